export type KeeperSettings = {
  /** How long a shard stays its owner's without a renewal. */
  readonly leaseMs: number;
  /** The share of the lease that the owner does not rely on: clocks run at slightly different rates. */
  readonly driftShare: number;
  readonly renewMs: number;
  /** The delay before a failed renewal is tried again. */
  readonly renewRetryMs: number;
  /** How often the node looks for free shards, and announces itself. */
  readonly balanceMs: number;
  readonly announceTtlMs: number;
  /** Shards taken over at the same time. */
  readonly takesMax: number;
  /** Between two moves for balance. */
  readonly moveEveryMs: number;
  /** How long a released shard is reserved for its named successor. */
  readonly reservedMs: number;
  /** How long to wait for a successor to read the shard's log ahead of time. */
  readonly prepareMs: number;
  /** The first and the longest pause before a shard that could not be taken over is tried again. */
  readonly troubleMs: number;
  readonly troubleMsMax: number;
};

export const keeperSettings = (given: Partial<KeeperSettings> = {}): KeeperSettings => {
  const leaseMs = given.leaseMs ?? 6_000;
  return {
    leaseMs,
    driftShare: 0.05,
    renewMs: leaseMs / 3,
    renewRetryMs: leaseMs / 20,
    balanceMs: leaseMs / 3,
    announceTtlMs: leaseMs * 1.5,
    takesMax: 8,
    moveEveryMs: 250,
    reservedMs: 2_000,
    prepareMs: 10_000,
    troubleMs: 500,
    troubleMsMax: 60_000,
    ...given,
  };
};
