/** Which worker runs an equal action and which waits, with a desk on a clock and runs that the test controls. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import { FlightDesk, type Desk } from "#doors/build/execute/flight-desk.ts";
import type { ActionSpec } from "#doors/build/plan.ts";
import { outcomeText, readOutcome, type RanBecause } from "./outcome.ts";
import { sharedRunner, type SharingPorts } from "./shared.ts";
import { actionClaim } from "#doors/build/testing/build.ts";

const action = digestOf(Buffer.from("action"));
const made = digestOf(Buffer.from("made"));
const about = { instance: "", action, exitCode: 0, token: 7 };
const well: RunOutcome = {
  kind: "done",
  payload: outcomeText({ ...about, code: 0, result: made }),
  digests: [made],
  publish: "p",
};
const lost: RunOutcome = { kind: "failed", reason: "executor-lost", message: "" };
const unwell: RunOutcome = { kind: "done", payload: outcomeText({ ...about, code: 8, response: made }) };
const missed: RanBecause = { kind: "never-stored" };

class Trial {
  readonly clock = new ManualClock();
  readonly #runs: PromiseWithResolvers<RunOutcome>[] = [];
  readonly #ports: SharingPorts;

  constructor(ports: Partial<SharingPorts> = {}) {
    const desk = new FlightDesk(this.clock);
    this.#ports = { clock: this.clock, deskFor: () => desk, isUnderWay: () => false, ...ports };
  }

  /** How many commands were started. */
  get started(): number {
    return this.#runs.length;
  }

  end(run: number, outcome: RunOutcome | Error): void {
    if (outcome instanceof Error) this.#runs[run]?.reject(outcome);
    else this.#runs[run]?.resolve(outcome);
  }

  begin(spec: Partial<ActionSpec> = {}, context: Partial<RunContext> = {}, because = missed): Promise<RunOutcome> {
    const run = (): Promise<RunOutcome> => {
      const end = Promise.withResolvers<RunOutcome>();
      this.#runs.push(end);
      return end.promise;
    };
    const text = JSON.stringify({ action, instance: "", merge: "m", doNotCache: false, because, ...spec });
    const task = { ...actionClaim, tenant: "mill", spec: text };
    const given = { task, signal: new AbortController().signal, clock: this.clock, ...context };
    return sharedRunner(run, this.#ports)(given as unknown as RunContext);
  }

  /** Lets everything continue that can. */
  async settle(): Promise<void> {
    await this.clock.advance(0);
  }
}

describe("an action that is running already", () => {
  test("is waited for, and its result is used: not run, published as its own", async () => {
    const trial = new Trial();
    const [first, second] = [trial.begin(), trial.begin({ principal: "me" })];
    await trial.settle();
    equal(trial.started, 1);
    trial.end(0, well);
    equal(await first, well);
    const taken = await second;
    ok(taken.kind === "done" && taken.publish?.includes(made));
    const { token, cached, because } = readOutcome({ payload: taken.payload, digests: [] }) ?? {};
    deepEqual([token, cached, because, taken.digests], [undefined, true, missed, [made]]);
    equal(trial.started, 1);
  });

  for (const [what, end] of Object.entries({ "was lost": lost, "did not end well for this machine": unwell }))
    test(`is run by the next one when it ${what}`, async () => {
      const trial = new Trial();
      const [first, second] = [trial.begin(), trial.begin()];
      await trial.settle();
      trial.end(0, end);
      equal(await first, end);
      await trial.settle();
      equal(trial.started, 2);
      trial.end(1, well);
      equal(await second, well);
    });

  test("is run by the next one when it was cancelled", async () => {
    const trial = new Trial();
    const [first, second] = [trial.begin(), trial.begin()];
    await trial.settle();
    trial.end(0, new Error("cancelled"));
    await rejects(first, /cancelled/);
    await trial.settle();
    equal(trial.started, 2);
    trial.end(1, well);
    equal(await second, well);
  });

  test("is not waited for by one that is cancelled in between, and not before its claim is confirmed", async () => {
    const trial = new Trial();
    const first = trial.begin();
    const cancel = new AbortController();
    let isHeld = false;
    const second = trial.begin({}, { signal: cancel.signal, started: async () => void (isHeld = true) });
    await trial.settle();
    equal(isHeld, true);
    cancel.abort(new Error("cancelled"));
    await rejects(second, /cancelled/);
    await rejects(trial.begin({}, { started: () => Promise.reject(new Error("not held")) }), /not held/);
    trial.end(0, well);
    equal(await first, well);
    equal(trial.started, 1);
  });

  test("is renewed while it runs, however long", async () => {
    const trial = new Trial();
    const [first, second] = [trial.begin(), trial.begin()];
    await trial.clock.advance(120_000);
    equal(trial.started, 1);
    trial.end(0, well);
    equal((await Promise.all([first, second])).length, 2);
    equal(trial.started, 1);
  });

  test("is run here, too, when it takes too long for the time of an attempt", async () => {
    const trial = new Trial();
    void trial.begin();
    const second = trial.begin();
    await trial.clock.advance(601_000);
    equal(trial.started, 2);
    trial.end(1, well);
    equal(await second, well);
  });

  const apart: Readonly<Record<string, () => Promise<readonly [Trial, Promise<RunOutcome>]>>> = {
    "is another action": async () => {
      const trial = new Trial();
      void trial.begin();
      await trial.settle();
      return [trial, trial.begin({ merge: "n" })];
    },
    "may not be cached": async () => {
      const trial = new Trial();
      void trial.begin();
      await trial.settle();
      return [trial, trial.begin({ doNotCache: true })];
    },
    "is wanted anew": async () => {
      const trial = new Trial();
      void trial.begin();
      await trial.settle();
      return [trial, trial.begin({}, {}, { kind: "skip-cache-lookup" })];
    },
    "is wanted by one who may not see results of others": async () => {
      const trial = new Trial();
      void trial.begin();
      await trial.settle();
      return [trial, trial.begin({}, {}, { kind: "may-not-read" })];
    },
    "was begun by an earlier life of the node": async () => {
      const trial = new Trial({ isUnderWay: () => true });
      void trial.begin();
      await trial.settle();
      return [trial, trial.begin()];
    },
    "is waited for by too many": async () => {
      const clock = new ManualClock();
      const desk = new FlightDesk(clock, { waitingMax: 0 });
      const trial = new Trial({ clock, deskFor: () => desk });
      void trial.begin();
      await trial.settle();
      return [trial, trial.begin()];
    },
    "is told at a desk that cannot be reached": async () => {
      const away = (): Promise<never> => Promise.reject(new Error("unavailable"));
      const desk: Desk = { enter: away, end: away };
      const trial = new Trial({ deskFor: () => desk });
      void trial.begin();
      await trial.settle();
      return [trial, trial.begin()];
    },
  };
  for (const [what, begin] of Object.entries(apart))
    test(`is not waited for if it ${what}`, async () => {
      const [trial, second] = await begin();
      await trial.settle();
      equal(trial.started, 2);
      trial.end(1, well);
      equal(await second, well);
    });
});
