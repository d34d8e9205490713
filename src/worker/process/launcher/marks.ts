/**
 * A mark on all processes of a run, for a plain user without control groups: it finds a daemon that has left its
 * session, its folder and its output.
 *
 * The mark is the limit of file locks. Linux has not enforced this limit since 2.4, but keeps it: every child inherits
 * it, also through exec, only root can raise it, and /proc shows it. It changes none of the command's variables. A
 * process that lowers the limit for itself loses its mark.
 */
import { randomInt } from "node:crypto";

/** `count` marks from `from` on. */
export type MarkRange = { readonly from: number; readonly count: number };

const count = 2 ** 20;
const blocksMax = 2 ** 31;

/** Numbers that are probably unused; undefined if our own limit is too low for any. */
export function markRange(ownLimits: string): MarkRange | undefined {
  const own = markIn(ownLimits);
  if (own === undefined) return undefined;
  const blocks = Math.min(Math.floor(own / count), blocksMax);
  return blocks < 3 ? undefined : { from: randomInt(1, blocks - 1) * count, count };
}

/** One for each run. They repeat after a million runs. */
export class Marks {
  readonly range: MarkRange;
  #given = 0;

  constructor(range: MarkRange) {
    this.range = range;
  }

  next(): number {
    this.#given = (this.#given + 1) % this.range.count;
    return this.range.from + this.#given;
  }
}

export const isInRange = (mark: number, { from, count: many }: MarkRange): boolean =>
  mark >= from && mark < from + many;

/** The mark in a process's limits. Infinite for one without a mark; undefined if the system does not show it. */
export function markIn(limits: string): number | undefined {
  const hard = /^Max file locks +\S+ +(\d+|unlimited)/m.exec(limits)?.[1];
  return hard === undefined ? undefined : hard === "unlimited" ? Infinity : Number(hard);
}

/** Shells name this limit -w or -x. A shell that knows neither marks nothing. */
export const markLine = (mark: number): string => `{ ulimit -w ${mark} || ulimit -x ${mark}; } 2>/dev/null`;

/** Kills all processes with a mark from $1 up to but not including $2. Twice: some may fork while others die. */
export const endMarkedScript = `
  for _ in 1 2; do
    [ "$2" -gt 0 ] || break
    for at in /proc/[0-9]*; do
      while read -r a b c _ hard _; do
        [ "$a $b $c" = "Max file locks" ] && [ "$hard" -ge "$1" ] && [ "$hard" -lt "$2" ] && kill -9 "\${at#/proc/}"
      done < "$at/limits"
    done
  done
`;
