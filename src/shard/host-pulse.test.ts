import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "#base/clock.ts";
import { Pulse } from "./host-pulse.ts";
import type { HostedShard } from "./host-shard.ts";

/** A clock whose timers go off when the test says so, however late. */
class LateClock implements Clock {
  mono = 0;
  readonly #timers: { readonly atMono: number; readonly run: () => void }[] = [];

  monotonicMs(): number {
    return this.mono;
  }

  wallMs(): number {
    return this.mono;
  }

  sleep(): Promise<void> {
    return Promise.reject(new Error("nobody sleeps here"));
  }

  after(ms: number, run: () => void): () => void {
    this.#timers.push({ atMono: this.mono + ms, run });
    return () => {};
  }

  /** It is now this late, and whatever is due goes off. */
  wakeAt(mono: number): void {
    this.mono = mono;
    for (const timer of this.#timers.filter(({ atMono }) => atMono <= mono)) {
      this.#timers.splice(this.#timers.indexOf(timer), 1);
      timer.run();
    }
  }
}

test("after a pause those who wrote meanwhile are heard before anyone's time is up (K11)", () => {
  const clock = new LateClock();
  const ticks: number[] = [];
  const shard = { phase: "serving", tickDueMono: Number.POSITIVE_INFINITY } as unknown as HostedShard;
  const pulse = new Pulse({
    clock,
    settings: { tickMs: 100, tickMsMin: 5, heartbeatMs: 1_000_000 },
    shards: () => [shard],
    tick: () => void ticks.push(clock.mono),
  });
  pulse.start();
  clock.wakeAt(100);
  clock.wakeAt(200);
  deepEqual(ticks, [100, 200]);
  clock.wakeAt(1_500); // stopped for more than a second
  deepEqual(ticks, [100, 200], "not at once");
  clock.wakeAt(1_600);
  deepEqual(ticks, [100, 200, 1_600]);
  // One that is always late is not held back for ever.
  for (const mono of [2_000, 2_400, 2_800, 3_200]) clock.wakeAt(mono);
  deepEqual(ticks, [100, 200, 1_600, 2_400, 3_200]);
  pulse.stop();
});
