import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "#kernel/model/event.ts";
import { judge } from "./verdict.ts";

const told = (event: object, seq: number) => ({ shard: 3, seq, epoch: 1, event: event as Event });
const submitted = (job: number, seq: number) => told({ kind: "job-submitted", job }, seq);
const ended = (job: number, seq: number) => told({ kind: "job-ended", job }, seq);
const committed = (task: number, seq: number) => told({ kind: "committed", task }, seq);

test("a result that counts twice, a name written twice and a job that never ends are violations", () => {
  const well = [submitted(1, 1), committed(1, 2), ended(1, 3)];
  deepEqual(judge(well, [{ name: "a", times: 1 }]).violations, []);
  deepEqual(judge([...well, committed(1, 4)], []).violations, ["task 3/1 has two results"]);
  deepEqual(judge([...well, submitted(2, 4)], []).violations, ["job 3/2 has not ended"]);
  deepEqual(judge(well, [{ name: "a", times: 2 }]).violations, ["a was written 2 times"]);
});

test("attempts are those that were started, in either way, and not released", () => {
  const claimed = (token: number, started: boolean) => told({ kind: "claimed", task: 1, token, started }, token);
  const log = [
    claimed(1, true),
    told({ kind: "attempt-ended", task: 1, token: 1, outcome: "released" }, 5),
    claimed(2, false),
    told({ kind: "started", task: 1, token: 2 }, 6),
    told({ kind: "attempt-ended", task: 1, token: 2, outcome: "expired" }, 7),
    claimed(3, true),
    claimed(4, false),
  ];
  deepEqual(judge(log, []).attempts, 2);
});

test("a claim is lost in a suspension if it expired between its worker's stop and its wake-up", () => {
  const claimed = (token: number, executor: string) => told({ kind: "claimed", task: token, token, executor }, token);
  const ended = (token: number, at: number, outcome = "expired") =>
    told({ kind: "attempt-ended", task: token, token, outcome, at }, 10 + token);
  const log = [
    ...[1, 2, 3].map((token) => claimed(token, "n1")),
    claimed(4, "n2"),
    ended(1, 50),
    ended(2, 150),
    ended(3, 150, "failed"),
    ended(4, 150),
  ];
  deepEqual(judge(log, [], [{ name: "n1", fromMs: 100, toMs: 200 }]).claimsLost, 1);
  deepEqual(judge(log, []).claimsLost, 0);
});
