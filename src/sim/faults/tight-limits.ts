/**
 * Limits so low that a small world reaches them, each drawn separately: the first limit reached would hide the others.
 */
import type { Random } from "#base/random.ts";
import type { Limits } from "#kernel/model/limits.ts";

export function drawTightLimits(random: Random, world: { executors: number; tenants: number }): Partial<Limits> {
  const tight: Partial<Limits> = {
    jobsMax: 6,
    tasksMax: random.pick([10, 40]),
    // A real worker is two executors: one runs tasks, the other plans.
    executorsMax: 2 * world.executors,
    executorsAlways: 2 * world.executors,
    tenantsMax: world.tenants,
    tasksPerStageMax: 5,
    stepsPerTaskMax: 3,
    signalsPerStageMax: 2,
    subscribersMax: 1,
    classesMax: 2,
    stateBytesMax: random.pick([40_000, 80_000]),
    queuedMax: random.pick([3, 10]),
    tickStepsMax: 3,
    settleStepsMax: random.pick([1, 2, 5]),
    digestsMax: 2,
    unpublishedMax: random.pick([1, 3]),
    seriesMax: 1,
    noticeMsMax: random.pick([500, 60_000]),
    // Shorter than some clients retry: the key is then bound again, to another job.
    keyRetentionMs: random.between(1_000, 6_000),
  };
  return Object.fromEntries(Object.entries(tight).filter(() => random.chance(0.5)));
}
