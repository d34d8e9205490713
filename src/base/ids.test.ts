import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatJob, formatTask, parseJob, parseTask } from "./ids.ts";

const shards = fc.integer({ min: 0, max: 36 ** 4 - 1 });
const numbers = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });

test("an id contains its shard and number, and parses to the same", () => {
  equal(formatJob(0, 1), "j0-1");
  equal(formatTask(1_023, 36), "tsf-10");
  fc.assert(
    fc.property(shards, numbers, (shard, number) => {
      deepEqual(parseJob(formatJob(shard, number)), { shard, job: number });
      deepEqual(parseTask(formatTask(shard, number)), { shard, task: number });
    }),
    { seed: 1 },
  );
});

test("nothing else is an id: each thing has one name", () => {
  const wrong = ["", "j", "j1", "j1-", "j-1", "t1-1", "J1-1", "j01-1", "j1-01", "j1-1 ", "j1-A", "j1--1", "j1-1-1"];
  for (const text of [...wrong, "j1-zzzzzzzzzzz", "j00000-1", "j1-1\n"]) equal(parseJob(text), undefined, text);
  equal(parseTask("j1-1"), undefined);
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), (text) => {
      const job = parseJob(text);
      if (job) equal(formatJob(job.shard, job.job), text);
    }),
    { seed: 2, numRuns: 1_000 },
  );
});
