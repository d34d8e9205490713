/** The job file: what a person writes, checked strictly. A typo is an error with its path, never ignored. */
import { z } from "zod";
import { durationHelp, parseDurationMs } from "#base/units.ts";
import type { FailReason } from "#kernel/model/model.ts";

const failReasons = [
  "executor-lost",
  "preempted",
  "timed-out",
  "out-of-memory",
  "input-lost",
  "user-failure",
] as const satisfies readonly FailReason[];

const Duration = z.string().transform((text, context) => {
  const ms = parseDurationMs(text);
  if (ms === undefined) context.addIssue({ code: "custom", message: durationHelp });
  return ms ?? 0;
});
const Name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9 ._:/@-]{0,199}$/, "begin with a letter or digit; up to 200 plain characters");
/** A job's name is for people: any one line of text, such as a command line as it was typed. */
export const nameLengthMax = 200;
const JobName = z
  .string()
  .min(1)
  .max(nameLengthMax)
  .regex(/^[^\p{Cc}]+$/u, "one line, without control characters");
const Label = z.string().regex(/^[^=\s]{1,100}=[^\s]{0,100}$/, 'write a label as name=value, such as "os=linux"');

const Lock = z.strictObject({
  name: Name,
  limit: z.int().min(1).max(1_000).default(1),
  queueMax: z.int().min(0).max(10_000).default(100),
  cancelInProgress: z.boolean().default(false),
});

/** What a command may be sent, by the names that job files use. */
export const signalWays = ["file", "HUP", "INT", "QUIT", "TERM", "USR1", "USR2"] as const;
const signalsMax = 20;

const Signals = z
  .record(
    z
      .string()
      .regex(/^(?!approve$|reject$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "a plain name; approve and reject are gates'"),
    z.enum(signalWays),
  )
  .refine((signals) => Object.keys(signals).length <= signalsMax, `${signalsMax} signals at most`);

const Stage = z
  .strictObject({
    name: Name,
    needs: z.array(Name).default([]),
    after: z.enum(["success", "end"]).default("success"),
    /** A line for the shell, or a program and its arguments. */
    run: z.union([z.string().min(1), z.array(z.string()).min(1)]).optional(),
    sleep: Duration.optional(),
    fail: z
      .strictObject({ reason: z.enum(failReasons).default("user-failure"), times: z.int().min(1).max(100).default(1) })
      .optional(),
    /** Waits for the signal "approve" (then does what the stage says) or "reject". */
    gate: z.strictObject({ timeout: Duration.default(24 * 3_600_000) }).optional(),
    count: z.int().min(1).max(100_000).default(1),
    /** As `count`, for many more: the tasks cost nothing until they run, and their results are one manifest. */
    array: z.int().min(1).max(1_000_000).optional(),
    parallelMax: z.int().min(0).default(0),
    attempts: z.int().min(1).max(100).default(3),
    /**
     * How many attempts that were lost to infrastructure do not count as `attempts`; left out, 10, and none for work
     * with outside effects.
     */
    losses: z.int().min(0).max(100).optional(),
    retry: z.enum(["infrastructure", "any"]).default("infrastructure"),
    backoff: Duration.default(1_000),
    timeout: Duration.default(3_600_000),
    /** How long an attempt that is asked to stop has to do so; left out, ten seconds. */
    stop: Duration.refine((ms) => ms <= 3_600_000, "an hour at most").optional(),
    effects: z.enum(["pure", "outside"]).default("pure"),
    requires: z.array(Label).default([]),
    /** Signals that its running commands take: each is a line of $MILLRACE_SIGNALS, and may be one of the system's. */
    signals: Signals.optional(),
    env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "not a name for a variable"), z.string()).default({}),
    failFast: z.boolean().default(false),
    mayFail: z.boolean().default(false),
    lock: Lock.optional(),
  })
  .refine((stage) => [stage.run, stage.sleep, stage.fail].filter((what) => what !== undefined).length <= 1, {
    message: "say one of run, sleep and fail, not several",
  })
  .refine((stage) => stage.signals === undefined || stage.run !== undefined, { message: "only run takes signals" })
  .refine((stage) => stage.array === undefined || stage.count === 1, { message: "say count or array, not both" })
  .refine((stage) => [stage.run, stage.sleep, stage.fail, stage.gate].some((what) => what !== undefined), {
    message: "say what to do: run, sleep, fail or gate",
  });

export const ShellJob = z.strictObject({
  name: JobName.default("job"),
  /** Jobs of one group share a shard: locks, merging and keys work within it. */
  group: Name.optional(),
  timeout: Duration.default(24 * 3_600_000),
  lock: Lock.optional(),
  stages: z.array(Stage).min(1).max(1_000),
});

export type ShellJob = z.output<typeof ShellJob>;
export type ShellStage = ShellJob["stages"][number];
