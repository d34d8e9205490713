/** Which cache a key finds, and which ones make way. Pure. */
import { createHash } from "node:crypto";
import { Problem } from "#http/problem.ts";
import { keyLengthMax, keysMax } from "#doors/ci/services/limits.ts";

export type CacheFacts = {
  readonly key: string;
  readonly sizeBytes: number;
  readonly createdAtMs: number;
  readonly usedAtMs: number;
};

const versionLengthMax = 512;

export function checkCacheKey(key: string): void {
  if (key === "" || key.length > keyLengthMax || key.includes(",") || /\p{Cc}/u.test(key) || !key.isWellFormed())
    throw new Problem(
      400,
      `the cache key ${JSON.stringify(key.slice(0, 80))} is not valid: it has 1 to ${keyLengthMax} characters, no comma and no control characters`,
    );
}

export function checkCacheKeys(keys: readonly string[]): void {
  if (keys.length === 0 || keys.length > keysMax) throw new Problem(400, `1 to ${keysMax} cache keys are expected`);
  for (const key of keys) checkCacheKey(key);
}

export function checkCacheVersion(version: string): void {
  if (version === "" || version.length > versionLengthMax || /\p{Cc}/u.test(version))
    throw new Problem(400, "the cache version is not valid");
}

const hashed = (...words: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(words)).digest("base64url").slice(0, 32);

/** Names of records are short, and keys are not: an entry is found by hashes of what it is about. */
export const repositoryPrefix = (repository: string): string => `${hashed(repository.toLowerCase())}/`;

export const versionPrefix = (repository: string, ref: string, version: string): string =>
  `${repositoryPrefix(repository)}${hashed(ref, version)}/`;

export const entryName = (repository: string, ref: string, version: string, key: string): string =>
  `${versionPrefix(repository, ref, version)}${hashed(key)}`;

/** Its time is over, whether or not it has been removed. */
export const isUnused = ({ usedAtMs }: Pick<CacheFacts, "usedAtMs">, nowMs: number, unusedMs: number): boolean =>
  usedAtMs + unusedMs <= nowMs;

/** Those that were not used for longest, until the rest fits; the newest entry stays. */
export function toEvict<E extends CacheFacts>(
  entries: readonly E[],
  bytesMax: number,
  unusedSinceMs: number,
): readonly E[] {
  const oldestFirst = entries.toSorted(
    (one, other) => one.usedAtMs - other.usedAtMs || one.createdAtMs - other.createdAtMs,
  );
  let sizeBytes = entries.reduce((sum, entry) => sum + entry.sizeBytes, 0);
  const evicted: E[] = [];
  for (const [at, entry] of oldestFirst.entries()) {
    const isLast = at === oldestFirst.length - 1;
    if (entry.usedAtMs >= unusedSinceMs && (sizeBytes <= bytesMax || isLast)) break;
    evicted.push(entry);
    sizeBytes -= entry.sizeBytes;
  }
  return evicted;
}
