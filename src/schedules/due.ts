/** What a schedule has to start now. Pure. */
import type { Cadence } from "./cron.ts";

/** What becomes of instants at which no node was there to start the job. */
export const catchUps = ["skip", "once", "all"] as const;
export type CatchUp = (typeof catchUps)[number];

export type Due = {
  /** The instants to start a job for, oldest first. */
  readonly fire: readonly number[];
  /** Instants up to here need no more looking at, when those of `fire` have been started. */
  readonly through: number;
  /** Instants that are left out, or as many of them as were looked at. */
  readonly skipped: number;
};

/** An instant that is no older than this was not missed: nodes may be busy, or just taking over. */
export const graceMs = 60_000;
/** Of missed instants, at most so many are made up for: the newest. */
export const catchUpMax = 100;
/** More than these are not looked at one by one: finding one takes a fifth of a millisecond. */
const instantsMax = 2 * catchUpMax;

/** Instants after `settledMs`, up to `nowMs`. */
export function dueAt(
  cadence: Cadence,
  { settledMs, nowMs, catchUp }: { readonly settledMs: number; readonly nowMs: number; readonly catchUp: CatchUp },
): Due {
  let instants = between(cadence, settledMs, nowMs);
  if (instants.length >= instantsMax)
    instants = between(cadence, Math.max(settledMs, cadence.back(nowMs, catchUpMax + 2) ?? 0), nowMs);
  const through = instants.at(-1) ?? settledMs;
  const isMissed = (at: number): boolean => at < nowMs - graceMs;
  const missed = instants.filter(isMissed);
  const inTime = instants.filter((at) => !isMissed(at));
  const fire = [...madeUp(missed, inTime, catchUp), ...inTime];
  return { fire, through, skipped: instants.length - fire.length };
}

function between(cadence: Cadence, afterMs: number, untilMs: number): number[] {
  const instants: number[] = [];
  for (let at = cadence.after(afterMs); at !== undefined && at <= untilMs; at = cadence.after(at)) {
    instants.push(at);
    if (instants.length === instantsMax) break;
  }
  return instants;
}

function madeUp(missed: readonly number[], inTime: readonly number[], catchUp: CatchUp): readonly number[] {
  switch (catchUp) {
    case "skip":
      return [];
    case "once":
      return inTime.length > 0 ? [] : missed.slice(-1);
    case "all":
      return missed.slice(-catchUpMax);
  }
}
