/** The words that the edge's settings are made of. */
import { z } from "zod";
import { durationHelp, parseDurationMs, parseSizeBytes, sizeHelp } from "#base/units.ts";

/** A duration between two bounds, in milliseconds; `min` and `max` are written as people write them. */
export const Duration = ({ min, max }: { readonly min: string; readonly max: string }) =>
  z.string().transform((text, context) => {
    const ms = parseDurationMs(text);
    if (ms === undefined) context.addIssue({ code: "custom", message: durationHelp });
    else if (ms < (parseDurationMs(min) ?? 0) || ms > (parseDurationMs(max) ?? Infinity))
      context.addIssue({ code: "custom", message: `write something between ${min} and ${max}` });
    return ms ?? 0;
  });

export const Size = ({ min, max }: { readonly min: string; readonly max: string }) =>
  z.string().transform((text, context) => {
    const bytes = parseSizeBytes(text);
    if (bytes === undefined) context.addIssue({ code: "custom", message: sizeHelp });
    else if (bytes < (parseSizeBytes(min) ?? 0) || bytes > (parseSizeBytes(max) ?? Infinity))
      context.addIssue({ code: "custom", message: `write something between ${min} and ${max}` });
    return bytes ?? 0;
  });

export const File = z.string().min(1).max(4_096);

/** Shown in logs and kept with the work: printable, short, no spaces at its ends. */
export const PrincipalName = z
  .string()
  .regex(
    /^[\p{L}\p{N}](?:[\p{L}\p{N} ._:/@+-]{0,198}[\p{L}\p{N}])?$/u,
    "write a name of at most 200 letters and digits",
  );
