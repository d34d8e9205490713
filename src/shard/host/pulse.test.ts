import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "#base/clock.ts";
import { Pulse } from "./pulse.ts";
import type { HostedShard } from "./shard.ts";

/** A clock whose timers fire when the test says so, however late. */
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

  /** Sets the time and fires all due timers. */
  wakeAt(mono: number): void {
    this.mono = mono;
    for (const timer of this.#timers.filter(({ atMono }) => atMono <= mono)) {
      this.#timers.splice(this.#timers.indexOf(timer), 1);
      timer.run();
    }
  }
}

test("after a pause, messages that arrived meanwhile are handled before any lease expires (K11)", () => {
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
  clock.wakeAt(2_500); // stopped again,
  clock.wakeAt(3_500); // and once more before it handled any message
  deepEqual(ticks, [100, 200, 1_600], "not at once either");
  clock.wakeAt(3_600);
  deepEqual(ticks, [100, 200, 1_600, 3_600]);
  // A node that is always late is not held back for ever.
  for (const mono of [4_000, 4_400, 4_800, 5_200, 5_600, 6_000, 6_400, 6_800]) clock.wakeAt(mono);
  deepEqual(ticks, [100, 200, 1_600, 3_600, 5_200, 6_800]);
  pulse.stop();
});

test("shards tick together, although a round takes a while", () => {
  const clock = new LateClock();
  const shards = Array.from({ length: 8 }, () => ({ phase: "serving", tickDueMono: 0 }) as unknown as HostedShard);
  const ticks: number[] = [];
  let rounds = 0;
  const pulse = new Pulse({
    clock,
    settings: { tickMs: 100, tickMsMin: 5, heartbeatMs: 1_000_000 },
    shards: () => {
      rounds += 1;
      return shards;
    },
    tick(shard, byMono) {
      if (shard.tickDueMono > byMono) return;
      ticks.push(clock.mono);
      clock.mono += 0.1;
      shard.tickDueMono = clock.mono + 100;
    },
  });
  pulse.start();
  for (let mono = 0; mono < 1_000; mono += 1) clock.wakeAt(Math.max(clock.mono, mono));
  ok(rounds <= 10, `${rounds} rounds in a second`);
  equal(ticks.length, rounds * shards.length, "each in every round");
  pulse.stop();
});
