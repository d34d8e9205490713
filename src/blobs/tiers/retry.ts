/** Retries: a few attempts, with growing and randomised delays. */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";

export type RetryPolicy = {
  readonly attemptsMax: number;
  readonly delayMs: number;
  readonly delayMsMax: number;
  /** No attempt begins later than this after the first. */
  readonly withinMs?: number;
};

export const retryPolicyDefault: RetryPolicy = { attemptsMax: 4, delayMs: 100, delayMsMax: 5_000 };

export type RetryPorts = { readonly clock: Clock; readonly random: Random; readonly policy: RetryPolicy };

/** Retries only "unavailable", which may pass. */
export async function retrying<T>(ports: RetryPorts, attempt: () => Promise<T>): Promise<T> {
  const { clock, random, policy } = ports;
  const lastAtMs = clock.monotonicMs() + (policy.withinMs ?? Infinity);
  for (let tried = 1; ; tried += 1)
    try {
      return await attempt();
    } catch (error) {
      const isLast = tried >= policy.attemptsMax || clock.monotonicMs() >= lastAtMs;
      if (isLast || !isFault(error, "unavailable")) throw error;
      const most = Math.min(policy.delayMsMax, policy.delayMs * 2 ** (tried - 1));
      await clock.sleep(most * (0.5 + random.fraction() / 2));
    }
}
