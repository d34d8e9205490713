import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { Fault } from "#base/fault.ts";
import { ManualClock, settle } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "#records/memory.ts";
import type { Typed } from "#records/typed.ts";
import { watchedRecords } from "#records/watch.ts";
import { schedulesIn, type Schedule } from "./schedule.ts";
import { ScheduleTimer, type Instant, type TimerPorts } from "./timer.ts";

const start = Date.parse("2026-01-01T00:00:30Z");
const minute = 60_000;

/** An engine that keeps request keys, as a shard does. */
class Engine {
  readonly jobs = new Map<string, string>();
  submits = 0;
  fails: Error | undefined;
  /** A node that dies here has submitted, or not, and never records it. */
  dies: "before" | "after" | undefined;

  readonly start = async (_schedule: Typed<Schedule>, { key }: Instant): Promise<{ jobId: string }> => {
    this.submits += 1;
    if (this.fails) throw this.fails;
    if (this.dies !== "before") this.jobs.set(key, this.jobs.get(key) ?? `job-${this.jobs.size + 1}`);
    if (this.dies !== undefined) throw new Error("the node died");
    return { jobId: this.jobs.get(key) ?? "" };
  };
}

function rig() {
  const clock = new ManualClock(start);
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const schedules = schedulesIn(records);
  const engine = new Engine();
  const lines: string[] = [];
  const timer = (more: Partial<TimerPorts> = {}) =>
    new ScheduleTimer({
      schedules,
      clock,
      owns: () => true,
      start: engine.start,
      log: (line) => void lines.push(line),
      ...more,
    });
  const add = (more: Partial<Schedule> = {}) =>
    schedules.create("acme", "nightly", {
      cron: "* * * * *",
      zone: "UTC",
      catchUp: "all",
      priority: 0,
      command: ["true"],
      id: "id1",
      paused: false,
      by: "ada",
      settledMs: clock.wallMs(),
      ...more,
    });
  const value = async (): Promise<Schedule | undefined> => (await schedules.read("acme", "nightly"))?.value;
  return { clock, schedules, engine, lines, timer, add, value };
}

describe("the timer of schedules", () => {
  test("starts one job per instant, and none while the schedule is paused or gone", async () => {
    const { clock, engine, timer, add, schedules, value } = rig();
    await add();
    await using _timer = timer();
    await clock.advance(3 * minute);
    equal(engine.jobs.size, 3);
    deepEqual((await value())?.last?.job, "job-3");
    await schedules.update("acme", "nightly", (was) => ({ ...was, paused: true }));
    await clock.advance(3 * minute);
    equal(engine.jobs.size, 3);
    await schedules.remove("acme", "nightly");
    await clock.advance(3 * minute);
    equal(engine.jobs.size, 3);
  });

  test("SC1 two nodes that both believe to own a schedule start one job per instant", async () => {
    const { clock, engine, timer, add } = rig();
    await add();
    await using _one = timer();
    await using _two = timer();
    await clock.advance(10 * minute);
    equal(engine.jobs.size, 10);
  });

  for (const dies of ["before", "after"] as const)
    test(`SC1 SC2 an owner that dies at the instant, ${dies} the job is there: the next starts one job`, async () => {
      const { clock, engine, timer, add, value } = rig();
      await add({ catchUp: "skip" });
      {
        await using _dying = timer();
        engine.dies = dies;
        await clock.advance(minute);
      }
      equal((await value())?.starting?.atMs, start + 30_000);
      engine.dies = undefined;
      await clock.advance(20 * minute); // no node is there: even with skip, what was begun is finished
      await using _next = timer();
      await clock.advance(1_000);
      const keys = [...engine.jobs.keys()];
      equal(keys.filter((key) => key.includes("00:01:00")).length, 1);
      deepEqual((await value())?.starting, undefined);
    });

  test("SC1 what was begun a day ago is not tried again: its request key may have ended", async () => {
    const { clock, engine, timer, add, value } = rig();
    await add();
    {
      await using _dying = timer();
      engine.dies = "after";
      await clock.advance(minute);
    }
    engine.dies = undefined;
    engine.jobs.clear(); // the engine has forgotten the key
    clock.wallAheadMs += 24 * 60 * minute;
    await using _next = timer();
    await clock.advance(5_000);
    equal([...engine.jobs.keys()].filter((key) => key.includes("2026-01-01T00:01:00")).length, 0);
    equal((await value())?.starting, undefined);
  });

  test("SC2 a failed submission is tried again; one that is refused for good is noted, and time goes on", async () => {
    const { clock, engine, timer, add, value, lines } = rig();
    await add();
    await using _timer = timer();
    engine.fails = new Fault("unavailable", "submit", {});
    await clock.advance(minute);
    equal(engine.jobs.size, 0);
    match(lines[0] ?? "", /schedule acme\/nightly: submit: unavailable/);
    engine.fails = undefined;
    await clock.advance(2_000);
    equal(engine.jobs.size, 1);
    engine.fails = new Fault("invalid", "submit", { why: "no such door" });
    await clock.advance(minute);
    match((await value())?.trouble?.why ?? "", /no such door/);
    engine.fails = undefined;
    await clock.advance(minute);
    equal(engine.jobs.size, 2);
    equal((await value())?.trouble, undefined);
  });

  test("a node looks after the schedules of its own shards only", async () => {
    const { clock, engine, timer, add } = rig();
    await add();
    await using _timer = timer({ owns: (key) => key !== "acme/nightly" });
    await clock.advance(5 * minute);
    await settle();
    equal(engine.submits, 0);
  });
});
