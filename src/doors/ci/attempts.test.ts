import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import type { TaskTemplate } from "#kernel/model/model.ts";
import { attemptsOf, isTriedAgain, lossOf, triesOf } from "./attempts.ts";
import { workflowOf } from "./run-frame.ts";
import { jobs, plan, record } from "./testing/run-rig.ts";

const jobOf = (line: string) => {
  const [job] = workflowOf(record(jobs({ a: line }))).jobs;
  if (job?.kind !== "job") throw new Error("there is one job");
  return job;
};
const attempts = (line: string): Partial<TaskTemplate> => {
  const job = jobOf(line);
  return attemptsOf(job.retry, lossOf(job, "resume"));
};

test("without reasons of its own a job is tried again when its runner is lost, as it always was", () => {
  const usual = { retryOn: "infrastructure", backoffMs: 1_000, backoffMsMax: 60_000 };
  deepEqual(attempts(""), { attemptsMax: 3, ...usual });
  deepEqual(attempts("x-millrace: { retry: { max: 5 } }"), { attemptsMax: 6, ...usual });
  deepEqual(attempts("x-millrace: { retry: { max: 0, on: runner-lost } }"), { attemptsMax: 1, ...usual });
  deepEqual(attempts("x-millrace: { on-runner-loss: fail }"), { attemptsMax: 1, ...usual });
});

test("each reason has a number of its own, and the longest delay counts for all", () => {
  deepEqual(
    attempts("x-millrace: { retry: [{ max: 4, on: [failure, timed-out] }, { max: 1, on: preempted, delay: 2m }] }"),
    {
      attemptsMax: 1 + 2 + 4 + 4 + 1,
      retryOn: "any",
      backoffMs: 120_000,
      backoffMsMax: 120_000,
      retries: {
        "executor-lost": 2,
        "input-lost": 2,
        "out-of-memory": 2,
        preempted: 1,
        "user-failure": 4,
        "timed-out": 4,
      },
    },
  );
  const failing = attempts("x-millrace: { on-runner-loss: fail, retry: { max: 1, on: failure } }");
  deepEqual([failing.attemptsMax, failing.retries?.["executor-lost"], failing.retries?.preempted], [2, 0, 0]);
});

test("what cannot be meant is refused with its place", () => {
  const problem = (retry: string): string => {
    try {
      plan(jobs({ a: `x-millrace: { retry: ${retry} }` }));
      return "";
    } catch (error) {
      return String(error);
    }
  };
  for (const [retry, said] of [
    ["{ max: 11 }", /whole number from 0 to 10/],
    ["{ max: 1, delay: soon }", /retry\.delay/],
    ["{ max: 1, delay: 2h }", /up to an hour/],
    ["[{ max: 1, on: failure }, { max: 2, on: [failure] }]", /twice/],
    ["{ max: 1, on: bored }", /bored/],
  ] as const)
    equal(said.test(problem(retry)), true, `${retry}: ${problem(retry)}`);
});

test("what becomes of a lost runner: the job says it, then its pool or the cluster", () => {
  const rows = [
    ["", "resume", "resume"],
    ["", "fail", "fail"],
    ["x-millrace: { on-runner-loss: restart }", "fail", "restart"],
    ["services: { db: { image: redis } }", "resume", "restart"],
    ["services: { db: { image: redis } }", "fail", "fail"],
    ["services: { db: { image: redis } }\n    x-millrace: { on-runner-loss: resume }", "restart", "resume"],
  ] as const;
  for (const [line, ofCluster, expected] of rows) equal(lossOf(jobOf(line), ofCluster), expected, line);
});

test("a job that failed is tried again as long as its own number says", () => {
  const retry = { counts: { failure: 2 } };
  equal(isTriedAgain(retry, "user-failure", undefined), true);
  equal(isTriedAgain(retry, "user-failure", { "user-failure": 1, "executor-lost": 7 }), true);
  equal(isTriedAgain(retry, "user-failure", { "user-failure": 2 }), false);
  equal(isTriedAgain(retry, "timed-out", undefined), false);
  equal(isTriedAgain(undefined, "user-failure", undefined), false);
  equal(triesOf({ "user-failure": 1, "executor-lost": 2, "timed-out": 1 }), 2);
});
