/** The data types of settings, here and in the rest of the configuration. */
import { z } from "zod";
import { durationHelp, parseDurationMs, parseSizeBytes, sizeHelp } from "./units.ts";

/** Written as people write them, such as 90s or 64KiB; left out: no bound. */
type Bounds = { readonly min?: string; readonly max?: string };

/** A duration, in milliseconds. */
export const Duration = (bounds: Bounds = {}) => measured(parseDurationMs, durationHelp, bounds);

/** A size, in bytes. */
export const Size = (bounds: Bounds = {}) => measured(parseSizeBytes, sizeHelp, bounds);

function measured(parse: (text: string) => number | undefined, help: string, { min, max }: Bounds) {
  const least = (min === undefined ? undefined : parse(min)) ?? 0;
  const most = (max === undefined ? undefined : parse(max)) ?? Number.POSITIVE_INFINITY;
  const range = max === undefined ? `write at least ${min}` : `write a value between ${min ?? 0} and ${max}`;
  return z.string({ error: help }).transform((text, context) => {
    const value = parse(text);
    if (value === undefined) context.addIssue({ code: "custom", message: help });
    else if (value < least || value > most) context.addIssue({ code: "custom", message: range });
    return value ?? 0;
  });
}

export const File = z.string().min(1).max(4_096);

/** Shown in logs and stored with the work: printable, short, no spaces at its ends. */
export const PrincipalName = z
  .string()
  .regex(
    /^[\p{L}\p{N}](?:[\p{L}\p{N} ._:/@+-]{0,198}[\p{L}\p{N}])?$/u,
    "write a name of at most 200 letters and digits",
  );
