import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { bootClock } from "./boot-clock.ts";
import { ManualMachine } from "./testing/manual-machine.ts";

const near = (actual: number, expected: number): void =>
  ok(Math.abs(actual - expected) <= 20, `${actual} is not about ${expected}`);

describe("a clock that counts the machine's sleep", () => {
  test("has advanced at the first reading after a sleep, and continues from there", async () => {
    const machine = new ManualMachine();
    const clock = bootClock(machine);
    const began = clock.monotonicMs();
    await machine.awake.advance(1_000);
    equal(clock.monotonicMs() - began, 1_000);
    machine.sleptMs += 60_000;
    near(clock.monotonicMs() - began, 61_000);
    await machine.awake.advance(500);
    machine.sleptMs += 300;
    near(clock.monotonicMs() - began, 61_800);
  });

  test("ignores that the wall clock is set, forwards or backwards", async () => {
    const machine = new ManualMachine();
    const clock = bootClock(machine);
    const began = clock.monotonicMs();
    for (const byMs of [3_600_000, -7_200_000, 86_400_000]) {
      machine.wallSetMs += byMs;
      equal(clock.monotonicMs(), began);
    }
    let fired = false;
    clock.after(10_000, () => (fired = true));
    await machine.awake.advance(9_999);
    ok(!fired);
  });

  test("reads the boot clock only when the wall clock has moved against the awake clock", async () => {
    const machine = new ManualMachine();
    const clock = bootClock(machine);
    machine.bootReads = 0;
    for (let i = 0; i < 1_000; i += 1) clock.monotonicMs();
    await machine.awake.advance(60_000);
    clock.monotonicMs();
    equal(machine.bootReads, 0);
    machine.sleptMs += 1_000;
    for (let i = 0; i < 1_000; i += 1) clock.monotonicMs();
    equal(machine.bootReads, 1);
  });

  test("fires timers that fell due during the sleep, in order, and the others at their time", async () => {
    const machine = new ManualMachine();
    const clock = bootClock(machine);
    const fired: string[] = [];
    clock.after(40_000, () => fired.push("late"));
    clock.after(9_000, () => fired.push("second"));
    clock.after(8_000, () => fired.push("first"));
    const cancel = clock.after(8_500, () => fired.push("cancelled"));
    await machine.awake.advance(1_000);
    cancel();
    machine.sleptMs += 30_000;
    deepEqual(fired, []);
    await machine.awake.advance(100);
    deepEqual(fired, ["first", "second"]);
    await machine.awake.advance(8_850);
    deepEqual(fired, ["first", "second"]);
    await machine.awake.advance(100);
    deepEqual(fired, ["first", "second", "late"]);
  });

  test("does not fire a timer early that was set right after the sleep", async () => {
    const machine = new ManualMachine();
    const clock = bootClock(machine);
    machine.sleptMs += 3_600_000;
    let fired = false;
    clock.after(5_000, () => (fired = true));
    await machine.awake.advance(4_900);
    ok(!fired);
    await machine.awake.advance(200);
    ok(fired);
  });

  test("finds a sleep that the wall clock hides, at its next check", async () => {
    const machine = new ManualMachine();
    const clock = bootClock(machine);
    const began = clock.monotonicMs();
    let fired = false;
    clock.after(5_000, () => (fired = true));
    machine.sleptMs += 10_000;
    machine.wallSetMs -= 10_000;
    equal(clock.monotonicMs(), began, "nothing shows it yet");
    await machine.awake.advance(100);
    near(clock.monotonicMs() - began, 10_100);
    ok(fired);
  });

  test("checks only while a timer is pending", async () => {
    const machine = new ManualMachine();
    const clock = bootClock(machine);
    const cancel = clock.after(5_000, () => {});
    await machine.awake.advance(1_000);
    cancel();
    await machine.awake.advance(200);
    equal(machine.awake.pending, 0);
  });

  test("uses the awake clock where there is no boot clock", async () => {
    const machine = new ManualMachine();
    machine.countsSleep = false;
    const clock = bootClock(machine);
    const began = clock.monotonicMs();
    machine.wallSetMs += 3_600_000;
    equal(clock.monotonicMs(), began);
  });

  test("a sleep ends with the signal's reason", async () => {
    const machine = new ManualMachine();
    const clock = bootClock(machine);
    const stop = new AbortController();
    const outcome = clock.sleep(5_000, stop.signal).catch((error: Error) => error.message);
    stop.abort(new Error("enough"));
    equal(await outcome, "enough");
    await machine.awake.advance(200);
    equal(machine.awake.pending, 0);
  });
});
