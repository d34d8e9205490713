import { equal, match } from "node:assert/strict";
import { test } from "node:test";
import type { WhyReason } from "#kernel/read/query.ts";
import { tellAttempt, tellBecause, tellWaits } from "./words.ts";

const waits: readonly (readonly [WhyReason, RegExp])[] = [
  [{ kind: "running", executor: "n1" }, /^it runs on n1$/],
  [{ kind: "needs", stages: ["a", "b", "c", "d", "e", "f"] }, /^it waits for a, b, c, d, e and 1 more$/],
  [{ kind: "quota", running: 4, runningMax: 4 }, /^its tenant runs 4 of at most 4 tasks$/],
  [{ kind: "no-executor", nearest: undefined, missing: [] }, /^there is no worker$/],
  [{ kind: "queued", position: 3, executors: 2, tenantsAhead: 1 }, /2 workers.*3 of its tenant.*1 other tenants/],
  [{ kind: "drained", executors: ["n1"] }, /drained: n1$/],
  [{ kind: "publishing", results: 2, forMs: 1_500 }, /2 results are being published, for 1.5s/],
];

test("why something waits is one sentence", () => {
  for (const [because, words] of waits) match(tellWaits(because), words);
});

test("a shard that no worker has asked yet does not say that there is none", () => {
  const unseen = { kind: "no-executor", nearest: undefined, missing: ["door=build", "pool=large"] } as const;
  equal(tellWaits(unseen, { nodes: 0, slots: 0, running: 0 }), "there is no worker");
  const busy = tellWaits(unseen, { nodes: 2, slots: 8, running: 8 });
  match(busy, /^no worker has asked for it yet: 2 nodes run actions, with 8 of 8 slots in use; .*pool=large$/);
});

test("why something was run is one sentence", () => {
  match(tellBecause({ kind: "incomplete", missing: "ab/1" }), /a blob that the result names was not: ab\/1$/);
  match(tellBecause({ kind: "lacks-output", output: "out" }), /lacks an output that is wanted here: out$/);
});

test("an attempt is described with where, how and why it ended, without the part for programs", () => {
  const attempt = { executor: "n1", outcome: "failed", grantedAtMs: 1_000, startedAtMs: 2_000, endedAtMs: 4_000 };
  const reason = "user-failure: exit code 1: no corn [action ab/1, response cd/2]";
  equal(tellAttempt({ ...attempt, reason }, 2), "attempt 2 on n1 failed after 2s: user-failure: exit code 1: no corn");
  const lost = { ...attempt, outcome: "expired", startedAtMs: 0, reason: "" };
  equal(tellAttempt(lost, 1), "attempt 1 on n1 was lost after 3s");
});
