/** A schedule: when to start a job, and which. A record of its tenant. */
import { z } from "zod";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { catchUps } from "./due.ts";

export const schedulesMax = 1_000;

/** What a person says. */
export const Wanted = z.object({
  cron: z.string().min(1).max(200),
  zone: z.string().min(1).max(100).default("UTC"),
  catchUp: z.enum(catchUps).default("once"),
  /** Left out: the first door that takes command lines. */
  door: z.string().max(64).optional(),
  command: z.array(z.string().max(32_768)).min(1).max(1_000).optional(),
  /** The text of a job's file. */
  document: z
    .string()
    .max(128 * 1024)
    .optional(),
  priority: z.int().min(-100).max(100).default(0),
});

export type Wanted = z.output<typeof Wanted>;

export const Schedule = Wanted.extend({
  /** Tells schedules apart that had the same name one after the other: part of each instant's request key. */
  id: z.string(),
  paused: z.boolean(),
  /** Who made it, and whether that was an operator. */
  by: z.string(),
  /** Every instant up to here is settled. */
  settledMs: z.number(),
  /** A job for this instant may have been started already, since then. */
  starting: z.object({ atMs: z.number(), sinceMs: z.number() }).optional(),
  last: z.object({ atMs: z.number(), job: z.string() }).optional(),
  /** Why the last instant started no job. */
  trouble: z.object({ atMs: z.number(), why: z.string() }).optional(),
});

export type Schedule = z.output<typeof Schedule>;

/** Doors that start runs by themselves keep theirs under a kind of their own. */
export const schedulesIn = (records: Records, kind = "schedule") =>
  recordsOf(records, { kind, schema: Schedule, limits: { countMax: schedulesMax, bytesMax: 64 << 20 } });

export type Schedules = ReturnType<typeof schedulesIn>;
