/**
 * Every limit on counts, sizes and times that a shard accepts. Only `decide` reads them: they may change between
 * restarts.
 */
export type Limits = {
  readonly stagesMax: number;
  readonly needsMax: number;
  readonly tasksPerStageMax: number;
  /** Sets of tasks in one plan. */
  readonly setsMax: number;
  /** Tasks of one array. */
  readonly arrayTasksMax: number;
  /** How many tasks of an array are queued ahead of what executors have taken. Also read by `apply`. */
  readonly arrayAheadMax: number;
  /** How many tasks of an array exist as objects at once: queued, claimed, or waiting for another attempt. */
  readonly arrayLiveMax: number;
  readonly tasksMax: number;
  readonly jobsMax: number;
  /** Estimated memory of the shard's state, unless shards share one limit: see memory.ts. */
  readonly stateBytesMax: number;
  /** Memory of one tenant in all shards that share the limit; 0 for as much as is left for other tenants. */
  readonly tenantBytesMax: number;
  /** Queued tasks of one tenant, unless `set-tenant` says otherwise; 0 for no limit. */
  readonly queuedMax: number;
  readonly specBytesMax: number;
  readonly resultBytesMax: number;
  readonly publishBytesMax: number;
  /** Digests of one checkpoint, and how soon after it another one of the task is recorded. */
  readonly checkpointDigestsMax: number;
  readonly checkpointMsMin: number;
  /** Unpublished results; when there are this many, no new work is accepted. */
  readonly unpublishedMax: number;
  /** How long after its job's end the shard keeps trying to publish a result. */
  readonly publishMsMax: number;
  readonly nameLengthMax: number;
  /** Digests of one result. They are kept in memory and in the log, and sent in one message. */
  readonly digestsMax: number;
  readonly labelsMax: number;
  /** All labels of one list together. */
  readonly labelsLengthMax: number;
  readonly tagsMax: number;
  readonly tagNameLengthMax: number;
  readonly tagValueLengthMax: number;
  /** Series of one tenant in one shard: they are kept for ever. */
  readonly seriesMax: number;
  readonly noticesMax: number;
  readonly noticeNameLengthMax: number;
  /** How long after its end a job is kept to tell it. */
  readonly noticeMsMax: number;
  /** Messages of failures and reasons of cancellations. */
  readonly messageLengthMax: number;
  readonly classesMax: number;
  readonly stepsMax: number;
  readonly stepsPerTaskMax: number;
  readonly signalsPerStageMax: number;
  readonly subscribersMax: number;
  readonly reserveCountMax: number;
  readonly renewClaimsMax: number;
  readonly leaseMsMin: number;
  readonly leaseMsMax: number;
  readonly attemptsMax: number;
  /** How long an attempt may be given to stop. */
  readonly stopMsMax: number;
  readonly durationMsMax: number;
  readonly jobDeadlineMsMax: number;
  /** The grace of a cancelled job, unless it was submitted or cancelled with another. */
  readonly cancelGraceMs: number;
  readonly keyRetentionMs: number;
  /** How many request keys stay in memory; the journal keeps all of them until they expire. */
  readonly keysInMemoryMax: number;
  readonly keyBytesInMemoryMax: number;
  readonly tenantsMax: number;
  readonly executorsMax: number;
  /** This many executors are accepted even when memory is full. */
  readonly executorsAlways: number;
  /** How far beyond the head of a queue to look for a preferred task. */
  readonly preferLookahead: number;
  /** How many consecutive failures that point to an executor drain it, and for how long. */
  readonly executorFailuresMax: number;
  readonly executorDrainMs: number;
  readonly executorFadeMs: number;
  /** How many due things one tick handles. */
  readonly tickStepsMax: number;
  /** How many follow-up steps (settle.ts) one command or tick does; the next one continues. */
  readonly settleStepsMax: number;
  /** If this much time passed since the last tick, the shard was asleep (K11). */
  readonly sleepMs: number;
  /**
   * An attempt is a straggler when it has run this many times the mean of its finished siblings, once this share of
   * them is done.
   */
  readonly speculateFactor: number;
  readonly speculateShare: number;
  readonly retryAfterMs: number;
};

const KiB = 1024;
const hour = 3_600_000;

export const defaultLimits: Limits = {
  stagesMax: 1_000,
  needsMax: 1_000,
  tasksPerStageMax: 100_000,
  setsMax: 10_000,
  arrayTasksMax: 1_000_000,
  arrayAheadMax: 64,
  arrayLiveMax: 100_000,
  tasksMax: 2_000_000,
  jobsMax: 2_000_000,
  stateBytesMax: KiB * KiB * KiB,
  tenantBytesMax: 0,
  queuedMax: 200_000,
  specBytesMax: 64 * KiB,
  resultBytesMax: 64 * KiB,
  publishBytesMax: 2 * KiB,
  checkpointDigestsMax: 5_000,
  checkpointMsMin: 10,
  unpublishedMax: 100_000,
  publishMsMax: hour,
  nameLengthMax: 256,
  digestsMax: 50_000,
  labelsMax: 64,
  labelsLengthMax: 4 * KiB,
  tagsMax: 16,
  tagNameLengthMax: 64,
  tagValueLengthMax: 256,
  seriesMax: 10_000,
  noticesMax: 8,
  noticeNameLengthMax: 200,
  noticeMsMax: 7 * 24 * hour,
  messageLengthMax: 4 * KiB,
  classesMax: 10_000,
  stepsMax: 256,
  stepsPerTaskMax: 10_000,
  signalsPerStageMax: 1_000,
  subscribersMax: 10_000,
  reserveCountMax: 1_000,
  renewClaimsMax: 100_000,
  leaseMsMin: 100,
  leaseMsMax: hour,
  attemptsMax: 100,
  stopMsMax: hour,
  durationMsMax: 35 * 24 * hour,
  jobDeadlineMsMax: 35 * 24 * hour,
  cancelGraceMs: 10 * 60_000,
  keyRetentionMs: 24 * hour,
  keysInMemoryMax: 200_000,
  keyBytesInMemoryMax: 64 * KiB * KiB,
  tenantsMax: 100_000,
  executorsMax: 100_000,
  executorsAlways: 1_000,
  preferLookahead: 16,
  executorFailuresMax: 5,
  executorDrainMs: 5 * 60_000,
  executorFadeMs: 10 * 60_000,
  tickStepsMax: 2_000,
  settleStepsMax: 10_000,
  sleepMs: 1_000,
  speculateFactor: 1.5,
  speculateShare: 0.5,
  retryAfterMs: 1_000,
};
