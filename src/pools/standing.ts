/** How pools stand, as records that every node reads: written by the node that keeps the pool. */
import { z } from "zod";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import type { Standing } from "./pool-keeper.ts";

const Machine = z.object({
  name: z.string(),
  template: z.string(),
  phase: z.enum(["starting", "up", "ended", "leaving"]),
  work: z.enum(["none", "idle", "busy"]),
  ageMs: z.number(),
  task: z.string().optional(),
  problem: z.object({ reason: z.string(), message: z.string() }).optional(),
  events: z.array(z.string()).optional(),
});

const Counts = z.object({ starting: z.int(), idle: z.int(), busy: z.int(), leaving: z.int() });

const PoolStanding = z.object({
  atMs: z.number(),
  node: z.string(),
  desired: z.int(),
  desiredBy: z.record(z.string(), z.int()),
  waiting: z.int(),
  running: z.int(),
  oldestForMs: z.number(),
  counts: Counts,
  /** Those with problems first; of many, not all. */
  machines: z.array(Machine),
  /** What keeps the node from acting. */
  trouble: z.string().optional(),
});
export type PoolStanding = z.output<typeof PoolStanding>;

/** They belong to the cluster, so to no tenant. */
export const standingOwner = "millrace";
const machinesMax = 200;
const messageMax = 600;

export const standingsIn = (records: Records) =>
  recordsOf(records, { kind: "pool.standing", schema: PoolStanding, limits: { countMax: 1_000, bytesMax: 64 << 20 } });
export type Standings = ReturnType<typeof standingsIn>;

export function standingOf(standing: Standing, about: { readonly node: string; readonly atMs: number }): PoolStanding {
  const { machines, ...rest } = standing;
  const counts = { starting: 0, idle: 0, busy: 0, leaving: 0 };
  for (const { phase, work } of machines)
    counts[phase === "leaving" || phase === "ended" ? "leaving" : work === "none" ? "starting" : work] += 1;
  const shown = machines
    .toSorted((a, b) => Number(b.problem !== undefined) - Number(a.problem !== undefined))
    .slice(0, machinesMax)
    .map(({ problem, events = [], ...machine }) => ({
      ...machine,
      ...(problem && { problem: { ...problem, message: problem.message.slice(0, messageMax) } }),
      ...(events.length > 0 && { events: events.slice(-5) }),
    }));
  return { ...rest, ...about, counts, machines: shown };
}

/** What changed is worth a write; that time went by is not. */
export const isNews = (before: PoolStanding | undefined, now: PoolStanding): boolean =>
  before === undefined || JSON.stringify(timeless(before)) !== JSON.stringify(timeless(now));

const timeless = ({ atMs: _at, oldestForMs, machines, ...rest }: PoolStanding) => ({
  ...rest,
  waitsLong: Math.floor(oldestForMs / 10_000),
  machines: machines.map(({ ageMs: _age, ...machine }) => machine),
});
