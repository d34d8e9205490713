import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { apply } from "#kernel/apply/apply.ts";
import { historyOf, noRows, type Rows } from "./history.ts";
import { createState } from "#kernel/model/state.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

/** The history rows that a transcript leaves behind. */
function rowsOf(story: string): Rows {
  const t = new Transcript();
  for (const line of story.trim().split("\n")) t.say(line.trim());
  const state = createState(0, t.state.limits);
  const rows = noRows();
  for (const event of t.events) {
    apply(state, event);
    historyOf(state, event, rows);
  }
  return rows;
}

describe("a job that has ended", () => {
  test("is kept while an executor may still be running something of it", () => {
    specify(`
      submit j : a[x];attempt=5s -> job 1 new; x READY, a j RUNNING
      reserve ada start          -> x#1; x RUNNING
      +5s                        -> x a j FAILED
      forget j                   -> forgotten=0
      +5s                        ->
      forget j                   -> forgotten=1
    `);
  });
});

describe("history", () => {
  test("has a row for every task, attempt, step, stage and job that ended", () => {
    const rows = rowsOf(`
      submit j prio=3 : a[x,y]
      reserve ada n=2 start
      report ada x fetch
      commit ada x result=fine digests=d
      fail ada y preempted message=away
      +1s
      reserve bea start
      fail bea y user-failure message=wrong
    `);
    deepEqual(
      rows.attempts.map(({ task, token, executor, outcome, reason }) => [task, token, executor, outcome, reason]),
      [
        [1, 1, "ada", "committed", ""],
        [2, 2, "ada", "failed", "preempted: away"],
        [2, 3, "bea", "failed", "user-failure: wrong"],
      ],
    );
    deepEqual(
      rows.tasks.map(({ task, key, phase, attempts, result, reason }) => [task, key, phase, attempts, result, reason]),
      [
        [1, "x", "SUCCEEDED", 1, "fine", ""],
        [2, "y", "FAILED", 2, "", "user-failure: wrong"],
      ],
    );
    deepEqual(
      rows.steps.map(({ task, token, step, name, status }) => [task, token, step, name, status]),
      [[1, 1, 1, "fetch", "succeeded"]],
    );
    deepEqual(
      rows.stages.map(({ name, phase, tasks, reason }) => [name, phase, tasks, reason]),
      [["a", "FAILED", 2, "1 of 2 failed"]],
    );
    deepEqual(
      rows.jobs.map(({ name, phase, priority, reason }) => [name, phase, priority, reason]),
      [["j", "FAILED", 3, "a: 1 of 2 failed"]],
    );
  });

  test("has the tasks that ended with their stage, and those that never ran", () => {
    const rows = rowsOf(`
      submit i reuse=a.x pinned=x : a[x] b[?]<a c[z]<b
      reserve ada
      plan ada b/plan skip
      submit j : d[v,w]
      cancel j
    `);
    deepEqual(
      rows.tasks.map(({ key, phase, result }) => [key, phase, result]),
      [
        ["x", "SUCCEEDED", "reused"],
        ["z", "CANCELLED", ""],
        ["v", "CANCELLED", ""],
        ["w", "CANCELLED", ""],
      ],
    );
    equal(rows.attempts.map(({ outcome, reason }) => `${outcome} ${reason}`).join(), "planned plan-closed");
  });

  test("has the attempt that lost to a second one, and those that a new generation cut off", () => {
    const outcomes = (story: string): unknown[] =>
      rowsOf(story).attempts.map(({ task, token, outcome }) => [task, token, outcome]);
    const lagging = `
      submit j : a[x,y];speculate
      reserve ada n=2 start
      +1s
      commit ada x
      +4s
      renew ada
      +6s
      reserve bea start
      commit bea y
      +20s
    `;
    deepEqual(outcomes(lagging), [
      [1, 1, "committed"],
      [2, 3, "committed"],
      [2, 2, "superseded"],
    ]);
    const cutOff = `
      submit j : a[x] b[p,q]<a
      reserve ada
      commit ada x
      reserve ada n=2 start
      invalidate x
      reserve ada
      commit ada x result=other
      +20s
    `;
    deepEqual(outcomes(cutOff), [
      [1, 1, "committed"],
      [1, 4, "committed"],
      [2, 2, "superseded"],
      [3, 3, "superseded"],
    ]);
    const late = `
      submit j : a[x];attempt=2s;tries=1
      reserve ada start
      +20s
    `;
    deepEqual(outcomes(late), [[1, 1, "timed-out"]]);
  });
});
