import { equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { KernelClock, StoreClock } from "./kernel-clock.ts";

const hour = 3_600_000;

async function rig(reachedMs = 0) {
  const clock = new ManualClock(1_000);
  const store = new StoreClock(clock);
  /** The store's clock now reads this. */
  const hears = (storeNowMs: number) => store.observe(storeNowMs, clock.monotonicMs());
  hears(50_000);
  const kernel = new KernelClock(clock, store, reachedMs);
  return { clock, hears, kernel };
}

describe("kernel time (K11)", () => {
  test("follows the store's clock between two readings", async () => {
    const { clock, kernel } = await rig();
    equal(kernel.nowMs(), 50_000);
    await clock.advance(123);
    equal(kernel.nowMs(), 50_123);
  });

  test("starts where the shard stopped, if the store's clock is behind", async () => {
    const { clock, kernel } = await rig(70_000);
    equal(kernel.nowMs(), 70_000);
    await clock.advance(1_000);
    equal(kernel.nowMs(), 70_900, "a little slower, until the store has caught up");
  });

  test("never runs backwards", async () => {
    const { clock, hears, kernel } = await rig();
    hears(50_000 - hour);
    let before = kernel.nowMs();
    for (let i = 0; i < 100; i += 1) {
      await clock.advance(7);
      const now = kernel.nowMs();
      ok(now >= before);
      before = now;
    }
  });

  test("follows a jump of the store's clock only slowly", async () => {
    const { clock, hears, kernel } = await rig();
    hears(50_000 + hour);
    await clock.advance(1_000);
    equal(kernel.nowMs(), 51_100);
  });

  test("a slow reading is ignored", async () => {
    const { clock, kernel } = await rig();
    const store = new StoreClock(clock);
    store.observe(10_000, clock.monotonicMs());
    const sentMono = clock.monotonicMs();
    await clock.advance(5_000);
    store.observe(10_000, sentMono);
    equal(store.nowMs(), 15_000);
    equal(kernel.nowMs(), 55_000);
  });
});
