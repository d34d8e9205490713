import { equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import type { HealthCheck } from "#doors/deploy/service/service-file.ts";
import { afterLook, freshCheck, isDue, withChecks, type Measured } from "./checks.ts";
import type { Verdict } from "./judge.ts";

const times = { after: 30_000, every: 5_000, samples: 2 };
const errors: HealthCheck = { prometheus: "http://metrics.example", query: "errors", max: 0.01, ...times };
const hook: HealthCheck = { webhook: "http://judge.example", ...times };
const value = (number: number): Measured => ({ kind: "value", value: number });
const none: Measured = { kind: "none", why: "no data" };
const counts = { machines: 1, healthy: 1, failed: 0, silent: 0, working: 0 };
const machines = (verdict: Verdict["verdict"]): Verdict => ({ verdict, ...counts, why: "1 of 1 healthy" });

const cases: readonly [string, HealthCheck, readonly Measured[], Verdict["verdict"], string, RegExp][] = [
  ["HC1: enough good measurements pass", errors, [value(0), value(0.01)], "healthy", "healthy", /errors: 0.01/],
  ["HC1: too few do not", errors, [value(0)], "healthy", "wait", /1 of 2 good measurements/],
  ["HC2: no data is not healthy", errors, [none, none, none], "healthy", "wait", /0 of 2.*last: no data/],
  ["HC3: one bad value fails the wave", errors, [value(0), value(0.02)], "healthy", "unhealthy", /at most 0.01/],
  ["HC3: also while machines still start", errors, [value(1)], "wait", "unhealthy", /at most 0.01/],
  ["good checks do not save a bad wave", errors, [value(0), value(0)], "unhealthy", "unhealthy", /1 of 1/],
  ["a lower limit", { ...errors, max: undefined, min: 5 }, [value(4)], "healthy", "unhealthy", /at least 5/],
  [
    "a webhook that says no",
    hook,
    [{ kind: "said", healthy: false, why: "orders fell" }],
    "healthy",
    "unhealthy",
    /orders fell/,
  ],
];

describe("checks of a wave", () => {
  for (const [name, check, measured, before, verdict, why] of cases)
    test(name, () => {
      const state = measured.reduce((known, each) => afterLook(known, each), freshCheck(check));
      const judged = withChecks(machines(before), [state]);
      equal(judged.verdict, verdict, judged.why);
      match(judged.why, why);
    });

  test("HC1: nothing is measured before its time after the activation, nor more often than asked for", () => {
    const state = freshCheck(errors);
    equal(isDue(state, { sinceActivationMs: 29_999, sinceLookMs: 60_000 }), false);
    equal(isDue(state, { sinceActivationMs: 30_000, sinceLookMs: 4_999 }), false);
    equal(isDue(state, { sinceActivationMs: 30_000, sinceLookMs: 5_000 }), true);
    equal(isDue({ ...state, bad: "x" }, { sinceActivationMs: 30_000, sinceLookMs: 5_000 }), false);
  });
});
