/**
 * Stops calls to a tier that does not answer. After a few failures in a row the tier counts as dead: calls fail at once
 * with "unavailable", and one call now and then goes through as a probe.
 */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { extend } from "#blobs/extend.ts";
import type { BlobStore, Range } from "#blobs/store.ts";

export type BreakerOptions = {
  readonly clock: Clock;
  /** Failures in a row until the tier counts as dead. */
  readonly failuresMax?: number;
  readonly probeMs?: number;
};

export type Breaker = BlobStore & { readonly isDead: boolean };

export function breaker(blobs: BlobStore, { clock, failuresMax = 3, probeMs = 2_000 }: BreakerOptions): Breaker {
  let failures = 0;
  let probedAtMs = 0;
  const enter = (): void => {
    if (failures < failuresMax) return;
    if (clock.monotonicMs() - probedAtMs < probeMs)
      throw new Fault("unavailable", "call a tier", { failures, why: "it has not answered recently" });
    probedAtMs = clock.monotonicMs();
  };
  const failed = (error: unknown): void => {
    if (!isFault(error, "unavailable")) return succeeded();
    failures += 1;
    if (failures === failuresMax) probedAtMs = clock.monotonicMs();
  };
  const succeeded = (): void => void (failures = 0);
  const guarded = async <T>(run: () => Promise<T>): Promise<T> => {
    enter();
    try {
      const result = await run();
      succeeded();
      return result;
    } catch (error) {
      failed(error);
      throw error;
    }
  };

  const guardedBlobs = extend(blobs, {
    missing: (digests) => guarded(() => blobs.missing(digests)),
    write: (digest, source, form) => guarded(() => blobs.write(digest, source, form)),
    pin: (digests, forMs) => guarded(() => blobs.pin(digests, forMs)),
    ...(blobs.part && {
      part: (digest: Digest, range: Required<Range>) => guarded(async () => await blobs.part?.(digest, range)),
    }),
    ...(blobs.file && { file: (digest: Digest) => guarded(async () => await blobs.file?.(digest)) }),
    async *read(digest, range, form) {
      enter();
      try {
        yield* blobs.read(digest, range, form);
        succeeded();
      } catch (error) {
        failed(error);
        throw error;
      }
    },
  });
  return {
    ...guardedBlobs,
    get isDead() {
      return failures >= failuresMax;
    },
  };
}
