import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { apply } from "#kernel/apply/apply.ts";
import { beginCapture, type Capture } from "#kernel/snapshot/capture.ts";
import type { Command } from "#kernel/model/command.ts";
import type { Tenant } from "#kernel/model/entities.ts";
import type { Event } from "#kernel/model/event.ts";
import { defaultLimits, type Limits } from "#kernel/model/limits.ts";
import { slotsOf } from "#kernel/apply/moves.ts";
import { Restorer } from "#kernel/snapshot/restore.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { type Outcome, step } from "#kernel/step.ts";
import { Chance, joiningOnly } from "#kernel/testing/chance.ts";
import { checkState } from "#kernel/testing/check.ts";
import { factsOf, snapshotOf } from "#kernel/testing/facts.ts";

const limits: Limits = {
  ...defaultLimits,
  executorFailuresMax: 3,
  executorDrainMs: 5_000,
  executorFadeMs: 3_600_000,
  arrayAheadMax: 2,
};
const runs = Number(process.env["CHANCE_RUNS"] ?? 40);
const steps = 250;
const seeds = fc.integer({ min: 1, max: 2 ** 31 });
const check = (property: (seed: number) => void, seed: number): void =>
  fc.assert(fc.property(seeds, property), { seed, numRuns: runs, endOnFailure: true });

/** Drives a shard with random commands; calls `look` with the events of each step. */
function drive(state: State, seed: number, look: (events: readonly Event[], command: Command) => void): void {
  const chance = new Chance(state, seed);
  let nowMs = 1_000_000;
  for (let i = 0; i < steps; i += 1) {
    nowMs += chance.passMs();
    const command = chance.next();
    const { events } = step(state, command, nowMs);
    look(events, command);
  }
}

const isSame = (live: State, other: State): void => {
  // The live shard's follow-up steps are in the log too: replay leaves none to do.
  deepEqual(step(other, { kind: "resume", executor: "nobody" }, live.nowMs).events, []);
  const wrong = checkState(other);
  deepEqual(wrong, []);
  deepEqual(factsOf(other), factsOf(live));
};

/** The claims that an executor holds are a set: compare them in any order. */
function inOrder(outcome: Outcome): Outcome {
  if (!outcome.ok || !("held" in outcome.reply)) return outcome;
  const held = outcome.reply.held.toSorted((a, b) => a.token - b.token);
  return { ...outcome, reply: { ...outcome.reply, held } };
}

const again = (events: readonly Event[]): Event[] => JSON.parse(JSON.stringify(events)) as Event[];

describe("random commands in random order", () => {
  test("every count and index is right after every step (K2, K5, K6), and the log never repeats an event", () => {
    const kinds = new Set<string>();
    check((seed) => {
      const state = createState(0, limits);
      const tokens = new Set<number>();
      const results = new Set<string>();
      const plans = new Set<string>();
      const once = (seen: Set<string>, what: string): void => {
        ok(!seen.has(what), `twice: ${what}`);
        seen.add(what);
      };
      drive(state, seed, (events, command) => {
        const wrong = checkState(state);
        ok(wrong.length === 0, `seed ${seed}, after ${JSON.stringify(command)}:\n${wrong.join("\n")}`);
        for (const event of events) {
          kinds.add(event.kind);
          if (event.kind === "claimed") {
            ok(!tokens.has(event.token), "a token is given once (K4)");
            tokens.add(event.token);
          }
          if (event.kind === "committed") once(results, `${event.task} ${generationIn(state, event.task)}`);
          if (event.kind === "stage-planned") once(plans, `${event.job} ${event.stage} ${event.generation}`);
        }
      });
    }, 1);
    ok(kinds.size >= 30, `only ${kinds.size} kinds of event came up: ${[...kinds].join()}`);
  });

  test("a submission that only joins does what a full submission does when it joins, and otherwise nothing", () => {
    const came = { joined: 0, refused: 0 };
    check((seed) => {
      const [one, other] = [createState(0, limits), createState(0, limits)];
      for (const state of [one, other]) drive(state, seed, () => {});
      const chance = new Chance(one, seed + 1);
      for (let i = 0; i < 400; i += 1) {
        const command = chance.next();
        if (command.kind !== "submit" || command.mergeKey === undefined || command.joinOnly) continue;
        const before = factsOf(one);
        const joining = step(one, joiningOnly(command), one.nowMs);
        if (!joining.ok && joining.rejection.kind === "nothing-to-join") {
          came.refused += 1;
          deepEqual(joining.events, []);
          deepEqual(factsOf(one), before);
          continue;
        }
        came.joined += 1;
        deepEqual(joining, step(other, command, one.nowMs));
        isSame(one, other);
      }
    }, 7);
    ok(came.joined > 20 && came.refused > 20, JSON.stringify(came));
  });

  test("replaying the log leads to the same state", () => {
    check((seed) => {
      const live = createState(0, limits);
      const log: Event[] = [];
      drive(live, seed, (events) => log.push(...events));
      const fresh = createState(0, limits);
      for (const event of again(log)) apply(fresh, event);
      isSame(live, fresh);
    }, 2);
  });

  test("a snapshot taken in slices while work goes on, and the log since it began, lead to the same state", () => {
    check((seed) => {
      const live = createState(0, limits);
      const atStep = seed % steps;
      const sliceSize = 1 + (seed % 400);
      let at = 0;
      let capture: Capture | undefined;
      let done = false;
      let begun: string[] = [];
      const chunks: string[] = [];
      const log: Event[] = [];
      drive(live, seed, (events) => {
        if (capture) log.push(...events);
        at += 1;
        if (at === atStep) {
          begun = factsOf(live);
          capture = beginCapture(live);
        }
        if (!capture || done) return;
        const chunk = capture.next(sliceSize);
        if (chunk === undefined) done = true;
        else chunks.push(chunk);
      });
      if (!capture) return;
      for (let chunk = capture.next(sliceSize); chunk !== undefined; chunk = capture.next(sliceSize))
        chunks.push(chunk);
      equal(live.capture, undefined);
      const restorer = new Restorer(0, limits);
      for (const chunk of chunks) restorer.add(chunk);
      const restored = restorer.finish();
      const asBegun = new Restorer(0, limits);
      for (const chunk of chunks) asBegun.add(chunk);
      deepEqual(factsOf(asBegun.finish()), begun);
      for (const event of again(log)) apply(restored, event);
      isSame(live, restored);
    }, 3);
  });

  test("a restored shard answers everything exactly like the original", () => {
    check((seed) => {
      const live = createState(0, limits);
      drive(live, seed, () => {});
      // The end of a quota slice is noticed at a tick, or when the shard is restored.
      const isNoticed = (tenant: Tenant): boolean => tenant.parked === tenant.running >= slotsOf(live, tenant);
      fc.pre([...live.tenants.values()].every(isNoticed));
      const restorer = new Restorer(0, limits);
      for (const chunk of snapshotOf(live)) restorer.add(chunk);
      const restored = restorer.finish();
      const takeOver: Command = { kind: "take-over", epoch: live.epoch + 1, node: "n" };
      const nowMs = live.nowMs + 1;
      deepEqual(step(restored, takeOver, nowMs), step(live, takeOver, nowMs));
      const chance = new Chance(live, seed + 1);
      let time = nowMs;
      for (let i = 0; i < 60; i += 1) {
        time += chance.passMs();
        const command = chance.next();
        // Of several overdue things, either may be handled first.
        if (command.kind === "tick") continue;
        deepEqual(inOrder(step(restored, command, time)), inOrder(step(live, command, time)), JSON.stringify(command));
      }
      isSame(live, restored);
    }, 4);
  });

  test("K9: after a long quiet time every job has ended and the agenda is empty", () => {
    check((seed) => {
      const state = createState(0, { ...limits, sleepMs: 10_000_000 });
      drive(state, seed, () => {});
      let { nowMs } = state;
      for (let i = 0; i < 10_000; i += 1) {
        const outcome = step(state, { kind: "tick" }, nowMs) as unknown as {
          reply: { more: boolean; nextDueInMs: number };
        };
        if (outcome.reply.more) continue;
        if (!Number.isFinite(outcome.reply.nextDueInMs)) break;
        nowMs += Math.max(1, outcome.reply.nextDueInMs);
      }
      deepEqual(checkState(state), []);
      equal(state.liveJobs, 0);
      equal(state.claims, 0);
      equal(state.ready.size, 0);
      equal(state.locks.byKey.size, 0);
      equal(state.outbox.size, 0);
      step(state, { kind: "forget", jobs: [...state.jobs.keys()] }, nowMs);
      equal(state.tasks.size, 0);
      step(state, { kind: "tick" }, nowMs + 25 * 3_600_000);
      for (const { bytes, account } of state.tenants.values()) deepEqual([bytes, account.bytes], [0, 0]);
      equal(state.memory.bytes, state.bytes);
    }, 5);
  });

  test("nothing is looked at too late: what is due is handled at the next tick", () => {
    check((seed) => {
      const state = createState(0, limits);
      drive(state, seed, (_, command) => {
        if (command.kind !== "tick") return;
        const late = state.nowMs - 100;
        for (const task of state.tasks.values()) {
          const isTimed = task.phase === "RETRY_PENDING" || task.phase === "WAITING";
          ok(!isTimed || task.dueAtMs > late, `task ${task.no} was due at ${task.dueAtMs}, now ${state.nowMs}`);
          const isQueued = task.phase === "READY" && task.list;
          ok(!isQueued || task.queuedAtMs + task.template.queueMs > late, `task ${task.no} waits too long`);
        }
        for (const executor of state.executors.values())
          for (const claim of executor.claims.values())
            ok(claim.expiresAtMs > late, `claim ${claim.token} ran out at ${claim.expiresAtMs}, now ${state.nowMs}`);
        for (const job of state.jobs.values())
          ok(job.endedAtMs > 0 || job.cancelled || job.deadlineAtMs > late, `job ${job.no} is past its deadline`);
      });
    }, 6);
  });
});

const generationIn = (state: State, task: number): number => state.findTask(task)?.generation ?? -1;
