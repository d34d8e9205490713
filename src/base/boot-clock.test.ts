import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { bootClock, type MachineClocks } from "./boot-clock.ts";
import { ManualClock } from "./manual-clock.ts";

/** A machine whose awake clock and timers stand still while it sleeps. */
class Laptop implements MachineClocks {
  readonly awake = new ManualClock(5_000);
  sleptMs = 0;
  wallSetMs = 0;
  bootReads = 0;
  countsSleep = true;

  awakeMs(): number {
    return this.awake.monotonicMs();
  }
  wallMs(): number {
    return 1_700_000_000_000 + this.awakeMs() + this.sleptMs + this.wallSetMs;
  }
  bootMs(): number | undefined {
    this.bootReads += 1;
    return this.countsSleep ? Math.floor((this.awakeMs() + this.sleptMs + 777) / 10) * 10 : undefined;
  }
  after(ms: number, run: () => void): () => void {
    return this.awake.after(ms, run);
  }
  afterIfUp(ms: number, run: () => void): void {
    this.awake.after(ms, run);
  }
}

const near = (actual: number, expected: number): void =>
  ok(Math.abs(actual - expected) <= 20, `${actual} is not about ${expected}`);

describe("a clock that counts the machine's sleep", () => {
  test("has moved on at the first reading after a sleep, and goes on from there", async () => {
    const laptop = new Laptop();
    const clock = bootClock(laptop);
    const began = clock.monotonicMs();
    await laptop.awake.advance(1_000);
    equal(clock.monotonicMs() - began, 1_000);
    laptop.sleptMs += 60_000;
    near(clock.monotonicMs() - began, 61_000);
    await laptop.awake.advance(500);
    laptop.sleptMs += 300;
    near(clock.monotonicMs() - began, 61_800);
  });

  test("is not moved by a wall clock that is set, forwards or backwards", async () => {
    const laptop = new Laptop();
    const clock = bootClock(laptop);
    const began = clock.monotonicMs();
    for (const byMs of [3_600_000, -7_200_000, 86_400_000]) {
      laptop.wallSetMs += byMs;
      equal(clock.monotonicMs(), began);
    }
    let fired = false;
    clock.after(10_000, () => (fired = true));
    await laptop.awake.advance(9_999);
    ok(!fired);
  });

  test("reads the boot clock only when the wall clock has moved against the awake clock", async () => {
    const laptop = new Laptop();
    const clock = bootClock(laptop);
    laptop.bootReads = 0;
    for (let i = 0; i < 1_000; i += 1) clock.monotonicMs();
    await laptop.awake.advance(60_000);
    clock.monotonicMs();
    equal(laptop.bootReads, 0);
    laptop.sleptMs += 1_000;
    for (let i = 0; i < 1_000; i += 1) clock.monotonicMs();
    equal(laptop.bootReads, 1);
  });

  test("fires timers that fell due meanwhile, in order, and the others at their time", async () => {
    const laptop = new Laptop();
    const clock = bootClock(laptop);
    const fired: string[] = [];
    clock.after(40_000, () => fired.push("late"));
    clock.after(9_000, () => fired.push("second"));
    clock.after(8_000, () => fired.push("first"));
    const cancel = clock.after(8_500, () => fired.push("cancelled"));
    await laptop.awake.advance(1_000);
    cancel();
    laptop.sleptMs += 30_000;
    deepEqual(fired, []);
    await laptop.awake.advance(100);
    deepEqual(fired, ["first", "second"]);
    await laptop.awake.advance(8_850);
    deepEqual(fired, ["first", "second"]);
    await laptop.awake.advance(100);
    deepEqual(fired, ["first", "second", "late"]);
  });

  test("does not fire a timer early that was set right after the sleep", async () => {
    const laptop = new Laptop();
    const clock = bootClock(laptop);
    laptop.sleptMs += 3_600_000;
    let fired = false;
    clock.after(5_000, () => (fired = true));
    await laptop.awake.advance(4_900);
    ok(!fired);
    await laptop.awake.advance(200);
    ok(fired);
  });

  test("finds a sleep that the wall clock hides, at its next look", async () => {
    const laptop = new Laptop();
    const clock = bootClock(laptop);
    const began = clock.monotonicMs();
    let fired = false;
    clock.after(5_000, () => (fired = true));
    laptop.sleptMs += 10_000;
    laptop.wallSetMs -= 10_000;
    equal(clock.monotonicMs(), began, "nothing shows it yet");
    await laptop.awake.advance(100);
    near(clock.monotonicMs() - began, 10_100);
    ok(fired);
  });

  test("looks only while somebody waits", async () => {
    const laptop = new Laptop();
    const clock = bootClock(laptop);
    const cancel = clock.after(5_000, () => {});
    await laptop.awake.advance(1_000);
    cancel();
    await laptop.awake.advance(200);
    equal(laptop.awake.pending, 0);
  });

  test("takes the awake clock's word where there is no other", async () => {
    const laptop = new Laptop();
    laptop.countsSleep = false;
    const clock = bootClock(laptop);
    const began = clock.monotonicMs();
    laptop.wallSetMs += 3_600_000;
    equal(clock.monotonicMs(), began);
  });

  test("a sleep ends with the signal's reason", async () => {
    const laptop = new Laptop();
    const clock = bootClock(laptop);
    const stop = new AbortController();
    const outcome = clock.sleep(5_000, stop.signal).catch((error: Error) => error.message);
    stop.abort(new Error("enough"));
    equal(await outcome, "enough");
    await laptop.awake.advance(200);
    equal(laptop.awake.pending, 0);
  });
});
