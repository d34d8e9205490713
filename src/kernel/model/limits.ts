/** Every count, size and time that a shard accepts. Only `decide` looks at them: they may change between restarts. */
export type Limits = {
  readonly stagesMax: number;
  readonly needsMax: number;
  readonly tasksPerStageMax: number;
  readonly tasksMax: number;
  readonly jobsMax: number;
  /** Of what the shard keeps in memory, estimated, unless it shares the memory of others: see memory.ts. */
  readonly stateBytesMax: number;
  /** Of one tenant, in all shards that share the memory; 0 for as much as is left for others. */
  readonly tenantBytesMax: number;
  /** Tasks of one tenant that may wait, unless `set-tenant` says otherwise; 0 for no limit. */
  readonly queuedMax: number;
  readonly specBytesMax: number;
  readonly resultBytesMax: number;
  readonly publishBytesMax: number;
  /** Results that wait to be published; with so many, no new work is taken in. */
  readonly unpublishedMax: number;
  /** How long after its job's end a result that could not be published is still tried. */
  readonly publishMsMax: number;
  readonly nameLengthMax: number;
  /** Of one result. They lie in memory and in the log, and travel in one message. */
  readonly digestsMax: number;
  readonly labelsMax: number;
  /** Of all labels of one list together. */
  readonly labelsLengthMax: number;
  /** Why something failed or is to stop, in words. */
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
  readonly durationMsMax: number;
  readonly jobDeadlineMsMax: number;
  readonly keyRetentionMs: number;
  /** How many request keys stay in memory; the journal keeps all of them for their time. */
  readonly keysInMemoryMax: number;
  readonly keyBytesInMemoryMax: number;
  readonly tenantsMax: number;
  readonly executorsMax: number;
  /** So many are let in although memory is full. */
  readonly executorsAlways: number;
  /** How far past the head of a queue a preferred task is looked for. */
  readonly preferLookahead: number;
  /** How many consecutive failures of the executor's own making drain it, and for how long. */
  readonly executorFailuresMax: number;
  readonly executorDrainMs: number;
  readonly executorFadeMs: number;
  /** What one tick does at most. */
  readonly tickStepsMax: number;
  /** How much of what follows by itself one command or tick does at most; the next goes on. */
  readonly settleStepsMax: number;
  /** A tick that comes later than this after the last one finds that the shard was asleep (K11). */
  readonly sleepMs: number;
  /** A straggler runs this many times the mean of its finished siblings, once this share of them is done. */
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
  tasksMax: 2_000_000,
  jobsMax: 2_000_000,
  stateBytesMax: KiB * KiB * KiB,
  tenantBytesMax: 0,
  queuedMax: 200_000,
  specBytesMax: 64 * KiB,
  resultBytesMax: 64 * KiB,
  publishBytesMax: 2 * KiB,
  unpublishedMax: 100_000,
  publishMsMax: hour,
  nameLengthMax: 256,
  digestsMax: 50_000,
  labelsMax: 64,
  labelsLengthMax: 4 * KiB,
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
  durationMsMax: 35 * 24 * hour,
  jobDeadlineMsMax: 35 * 24 * hour,
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
