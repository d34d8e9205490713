/**
 * Logs that were written once must be readable for ever: each golden log is replayed, and the queries must give the
 * answers that they gave when the log was new. A log is never changed; `UPDATE_GOLDEN=1 npm test` rewrites the answers,
 * and the diff is reviewed like code.
 */
import { deepEqual, equal } from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { answer } from "./read/answer.ts";
import { apply } from "./apply/apply.ts";
import { type Event, featureOf } from "./model/event.ts";
import { historyOf, noRows } from "./read/history.ts";
import { defaultLimits } from "./model/limits.ts";
import type { Query } from "./read/query.ts";
import { Restorer } from "./snapshot/restore.ts";
import { createState, type State } from "./model/state.ts";
import { checkState } from "./testing/check.ts";
import { factsOf, snapshotOf } from "./testing/facts.ts";

/** v2: results that are to be published; v3: a log for each of the things that came with feature level 3;
 * v4: locks of single tasks; held-back: one in which the owner passed over a lost result that it held back. */
const logs = ["v1", "v2", "v3-plans", "v3-arrays", "v3-tags", "v4-task-locks", "v4-held-back"];

const read = (name: string): string => readFileSync(new URL(`./golden/${name}`, import.meta.url), "utf8");

const eventsOf = (log: string): Event[] =>
  read(`${log}.ndjson`)
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Event);

/** The answers to every query about the state, and the history rows that were written. */
function answers(state: State, rows: unknown): unknown {
  const ask = (query: Query): unknown => {
    const answered = answer(state, query, state.nowMs);
    return answered.ok ? answered.answer : answered.rejection;
  };
  // Memory sizes are estimates, and may be estimated differently later.
  const stats = { ...(ask({ kind: "stats" }) as object), stateBytes: undefined };
  const numbers = [...state.jobs.keys()].toSorted((a, b) => a - b);
  return {
    stats,
    executors: ask({ kind: "executors" }),
    list: ask({ kind: "jobs", limit: 100 }),
    jobs: numbers.map((job) => ask({ kind: "job", job })),
    why: numbers.map((job) => ask({ kind: "why", job })),
    keys: [...state.keys].toSorted(([a], [b]) => (a < b ? -1 : 1)),
    rows,
  };
}

describe("golden logs", () => {
  for (const log of logs)
    test(`${log} replays to the answers it gave when it was written`, () => {
      const state = createState(0, defaultLimits);
      const rows = noRows();
      for (const event of eventsOf(log)) {
        apply(state, event);
        historyOf(state, event, rows);
      }
      state.unsettled.clear();
      state.locks.unsettled.clear();
      state.locks.wanting.clear();
      deepEqual(checkState(state), []);
      const was = JSON.parse(JSON.stringify(answers(state, rows))) as unknown;
      const file = `${log}.expected.json`;
      if (process.env["UPDATE_GOLDEN"] === "1")
        writeFileSync(new URL(`./golden/${file}`, import.meta.url), `${JSON.stringify(was, undefined, 2)}\n`);
      deepEqual(was, JSON.parse(read(file)));
      const restorer = new Restorer(0, defaultLimits);
      for (const chunk of snapshotOf(state)) restorer.add(chunk);
      deepEqual(factsOf(restorer.finish()), factsOf(state));
    });

  test("together they contain every kind of event, and each kind has a feature level", () => {
    const seen = new Set(logs.flatMap((log) => eventsOf(log).map((event) => event.kind)));
    deepEqual([...seen].toSorted(), Object.keys(featureOf).toSorted());
    for (const kind of seen) equal(featureOf[kind] >= 1, true, kind);
  });
});
