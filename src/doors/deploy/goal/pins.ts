/**
 * Pins: a machine, or all machines with a label, stay at a version until a time, whatever is released. Part of the
 * signed goal, so that machines verify it as they verify the rest. Pure.
 *
 * PN1 A pin has an owner and an end; nodes take it out of the goal when its time is over.
 * PN2 Pinned machines are no part of a wave: they neither hold it up nor count as healthy.
 */
import { z } from "zod";
import { isDigest } from "#base/digest.ts";

export const Pin = z.strictObject({
  /** One machine, or all that have the label. */
  machine: z.string().min(1).max(200).optional(),
  label: z.string().min(1).max(201).optional(),
  manifest: z.string().refine(isDigest, "not a digest"),
  by: z.string().max(200),
  why: z.string().max(500),
  untilMs: z.number(),
});
export type Pin = z.output<typeof Pin>;
export const pinsMax = 500;

type Subject = Pick<Pin, "machine" | "label">;
type Placed = { readonly machine: string; readonly labels: readonly string[] };

/** A machine's own pin counts more than one of its labels'. */
export const pinOf = ({ machine, labels }: Placed, pins: readonly Pin[] = []): Pin | undefined =>
  pins.find((pin) => pin.machine === machine) ??
  pins.find(({ label }) => label !== undefined && labels.includes(label));

export const livePins = (pins: readonly Pin[] | undefined, nowMs: number): readonly Pin[] =>
  pins?.filter(({ untilMs }) => untilMs > nowMs) ?? [];

export const isSameSubject = (a: Subject, b: Subject): boolean => a.machine === b.machine && a.label === b.label;

export const tellPin = ({ by, why, untilMs }: Pin): string =>
  `pinned by ${by} until ${new Date(untilMs).toISOString()}${why === "" ? "" : `: ${why}`}`;
