import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { Trace } from "#sim/trace.ts";
import { World } from "./world.ts";

const worldOf = (seed: number) => new World(new Random(seed), new Trace(100));
const plainClock = () => ({ rate: 1, bootMonotonicMs: 0, wallOffsetMs: 0 });

test("S1: a turn settles every promise before the next event", async () => {
  const world = worldOf(1);
  const life = world.machine("a", plainClock()).boot();
  const seen: string[] = [];
  const chain = async (name: string) => {
    await life.clock.sleep(10);
    for (let i = 0; i < 5; i += 1) await Promise.resolve();
    seen.push(name);
  };
  void chain("first");
  void chain("second");
  life.after(10, () => seen.push("event"));
  await world.run(100);
  deepEqual(seen, ["first", "second", "event"]);
});

test("S2: what a life has scheduled is dropped when it ends", async () => {
  const world = worldOf(1);
  const machine = world.machine("a", plainClock());
  const seen: string[] = [];
  const first = machine.boot();
  void first.clock.sleep(20).then(() => seen.push("never"));
  world.after(10, undefined, () => machine.crash());
  world.after(
    15,
    undefined,
    () =>
      void machine
        .boot()
        .clock.sleep(1)
        .then(() => seen.push("reborn")),
  );
  await world.run(100);
  deepEqual(seen, ["reborn"]);
});

test("S3: a stopped machine gets its overdue events when it continues, and its clock ran meanwhile", async () => {
  const world = worldOf(1);
  const machine = world.machine("a", { rate: 2, bootMonotonicMs: 5, wallOffsetMs: 0 });
  const life = machine.boot();
  const seen: number[] = [];
  void life.clock.sleep(20).then(() => seen.push(life.clock.monotonicMs()));
  world.after(5, undefined, () => machine.stop());
  world.after(50, undefined, () => machine.resume());
  await world.run(100);
  deepEqual(seen, [105]);
});

test("the same seed gives the same trace, another seed another", async () => {
  const run = async (seed: number) => {
    const world = worldOf(seed);
    const life = world.machine("a", plainClock()).boot();
    for (let i = 0; i < 20; i += 1) life.after(world.random.below(100), () => world.say(`event ${i}`));
    await world.run(1000);
    return world.trace.hash();
  };
  equal(await run(7), await run(7));
  equal((await run(7)) === (await run(8)), false);
});

test("an aborted sleep rejects and leaves no event behind", async () => {
  const world = worldOf(1);
  const life = world.machine("a", plainClock()).boot();
  const stop = new AbortController();
  const slept = rejects(life.clock.sleep(1_000, stop.signal), /enough/);
  life.after(5, () => stop.abort(new Error("enough")));
  await world.run(2_000);
  await slept;
  equal(world.nowMs, 5);
});

test("a sleep until a time on the machine's own clock ends", async () => {
  let slept = 0;
  for (const rate of [1.000_3, 0.999_7, 1.001_7]) {
    const world = worldOf(1);
    let isLate = false;
    world.after(1_234_567.89, undefined, () => (isLate = true));
    await world.run(2_000_000, () => isLate);
    const { clock } = world.machine("a", { rate, bootMonotonicMs: 0, wallOffsetMs: 0 }).boot();
    void (async () => {
      for (let untilMono = clock.monotonicMs(); ; untilMono += 77.7)
        while (clock.monotonicMs() < untilMono) {
          slept += 1;
          await clock.sleep(untilMono - clock.monotonicMs());
        }
    })();
    await world.run(1_300_000, () => slept > 10_000);
  }
  ok(slept < 10_000, `${slept} sleeps`);
});

test("a loop that waits for nothing ends the run", async () => {
  const world = worldOf(1);
  const { clock } = world.machine("a", plainClock()).boot();
  void (async () => {
    for (;;) await clock.sleep(0);
  })();
  await rejects(world.run(10), /time stands still/);
});

test("the real clock cannot be used inside the world", async () => {
  const world = worldOf(1);
  world.after(1, undefined, () => void Date.now());
  await rejects(world.run(10), /Date\.now .*was called inside the world/);
  equal(typeof Date.now(), "number");
});

test("an unhandled rejection ends the run", async () => {
  const world = worldOf(1);
  world.after(1, undefined, () => void Promise.reject(new Error("dropped")));
  await rejects(world.run(10), /unhandled rejection: .*dropped/s);
});

test("the running time of a life excludes the times when it was stopped", async () => {
  const world = worldOf(1);
  const machine = world.machine("a", plainClock());
  world.after(5, undefined, () => machine.boot());
  for (const [stopMs, resumeMs] of [
    [10, 30],
    [50, 51],
  ] as const) {
    world.after(stopMs, undefined, () => machine.stop());
    world.after(resumeMs, undefined, () => machine.resume());
  }
  const seen: number[] = [];
  for (const atMs of [5, 20, 40, 60]) world.after(atMs, undefined, () => seen.push(machine.life?.ranMs ?? -1));
  await world.run(100);
  deepEqual(seen, [0, 5, 15, 34]);
});

test("a machine that slept fires overdue timers within 100 ms of waking, and counts the time", async () => {
  const world = worldOf(1);
  const machine = world.machine("a", { rate: 2, bootMonotonicMs: 5, wallOffsetMs: 0 });
  const life = machine.boot();
  const fired: string[] = [];
  life.clock.after(4_000, () => fired.push(`due at ${Math.round(world.nowMs)}`));
  life.clock.after(40_000, () => fired.push(`later at ${Math.round(world.nowMs)}`));
  world.after(1_000, undefined, () => machine.sleep());
  world.after(11_000, undefined, () => machine.resume());
  await world.run(15_000);
  deepEqual(fired, ["due at 11100"]);
  ok(Math.abs(life.clock.monotonicMs() - 30_005) <= 20, `${life.clock.monotonicMs()}`);
  await world.run(30_000);
  equal(fired.length, 2);
  ok(Math.abs(Number(fired[1]?.slice(9)) - 20_000) <= 20, String(fired[1]));
});
