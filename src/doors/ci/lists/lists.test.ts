/** Runners and attempts as people see them. */
import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import type { ExecutorView } from "#kernel/read/query.ts";
import { attemptsOfHistory, attemptsSoFar } from "./attempts.ts";
import { groupsOf, runnersOf } from "./runners.ts";

const executor = (name: string, offers: readonly string[], more: Partial<ExecutorView> = {}): ExecutorView => ({
  executor: name,
  offers,
  claims: 0,
  drained: undefined,
  failures: 0,
  seenAgoMs: 0,
  ...more,
});

test("a runner that asks several shards is one, with all its jobs; what takes no jobs of CI is none", () => {
  const offers = ["door=ci", "runner=gpu", "runner=linux", "group=big", "region=eu", "isolation=sandbox"];
  const runners = runnersOf(
    [
      executor("b", ["door=ci", "runner=linux", "containers=own"], { drained: "asked to" }),
      executor("a", offers, { claims: 1, seenAgoMs: 500 }),
      executor("a", offers, { claims: 2, seenAgoMs: 100 }),
      executor("builds", ["door=build"]),
      executor("a/plans", [...offers, "only=plans"]),
    ],
    1_000,
  );
  deepEqual(
    runners.map(({ name, running, seenAt, drained }) => [name, running, seenAt, drained]),
    [
      ["a", 3, "1970-01-01T00:00:00.900Z", undefined],
      ["b", 0, "1970-01-01T00:00:01.000Z", "asked to"],
    ],
  );
  const [a, b] = runners;
  deepEqual([a?.labels, a?.groups, a?.region, a?.isSandboxed], [["gpu", "linux"], ["big"], "eu", true]);
  deepEqual([b?.hasContainers, b?.isSandboxed], [true, false]);
  deepEqual(groupsOf(runners), [{ group: "big", runners: ["a"], labels: ["gpu", "linux"] }]);
});

test("attempts are numbered, with who ran them and how they ended", () => {
  const row = {
    shard: 0,
    task: 1,
    token: 5,
    job: 1,
    executor: "a",
    reason: "",
    grantedAtMs: 1,
    startedAtMs: 2,
    endedAtMs: 3,
  };
  const shown = attemptsOfHistory([
    { ...row, outcome: "expired", reason: "not heard from" },
    { ...row, token: 9, executor: "b", outcome: "committed" },
  ]);
  deepEqual(
    shown.map(({ number, runner, outcome, reason }) => [number, runner, outcome, reason]),
    [
      [1, "a", "expired", "not heard from"],
      [2, "b", "committed", undefined],
    ],
  );
  const claim = { token: 9, executor: "b", expiresInMs: 1, started: true };
  const live = attemptsSoFar({
    attempts: 2,
    claims: [claim],
    lastFailure: { reason: "executor-lost", message: "lost" },
  });
  deepEqual(
    live.map(({ number, runner, outcome }) => [number, runner, outcome]),
    [
      [1, "", "executor-lost"],
      [2, "b", "running"],
    ],
  );
  equal(attemptsSoFar({ attempts: 0, claims: [], lastFailure: undefined }).length, 0);
});
