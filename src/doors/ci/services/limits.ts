/** What the services that actions call accept at most. */
const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;
const dayMs = 24 * 3_600_000;

export type ServiceLimits = {
  readonly artifactBytesMax: number;
  readonly artifactsPerRunMax: number;
  readonly retentionMsDefault: number;
  readonly retentionMsMax: number;
  /** Of one cache entry. */
  readonly cacheBytesMax: number;
  /** Of all caches of a repository: those that were not used for longest make way. */
  readonly cacheRepositoryBytesMax: number;
  /** A cache that was not used for so long goes. */
  readonly cacheUnusedMs: number;
  /** One part of an upload. */
  readonly blockBytesMax: number;
  readonly blocksMax: number;
  /** From its first to its last byte. */
  readonly uploadMs: number;
  /** How long a signed address can be used. */
  readonly addressMs: number;
};

export const serviceLimitsDefault: ServiceLimits = {
  artifactBytesMax: 10 * GiB,
  artifactsPerRunMax: 500,
  retentionMsDefault: 90 * dayMs,
  retentionMsMax: 400 * dayMs,
  cacheBytesMax: 10 * GiB,
  cacheRepositoryBytesMax: 10 * GiB,
  cacheUnusedMs: 7 * dayMs,
  blockBytesMax: 256 * MiB,
  blocksMax: 10_000,
  uploadMs: 6 * 3_600_000,
  addressMs: 3_600_000,
};

/** Records of uploads and names, of one tenant and kind. */
export const nameLimits = { countMax: 200_000, bytesMax: 512 * MiB } as const;

export const requestBytesMax = 64 * KiB;
export const keyLengthMax = 512;
export const keysMax = 10;
