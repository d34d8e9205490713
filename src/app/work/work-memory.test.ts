import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Memory } from "#kernel/memory/memory.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import { Shedding } from "./shedding.ts";
import { memoryLimits, memorySettings, processMemory, workBytesMax } from "./work-memory.ts";

const GiB = 1024 ** 3;
const MiB = 1024 ** 2;

describe("the memory for work follows from the process's memory", () => {
  test("two fifths of the heap, less what the program needs itself", () => {
    equal(workBytesMax({ heapBytesMax: 4 * GiB, machineBytes: 64 * GiB }), Math.floor((4 * GiB - 64 * MiB) * 0.4));
  });

  test("a container's limit counts if it is below the heap's", () => {
    const contained = workBytesMax({ heapBytesMax: 4 * GiB, machineBytes: GiB });
    equal(contained, Math.floor((0.75 * GiB - 64 * MiB) * 0.4));
  });

  test("there is always some, and what this process has is less than its heap", () => {
    ok(workBytesMax({ heapBytesMax: 32 * MiB, machineBytes: GiB }) > 0);
    const here = processMemory();
    ok(workBytesMax(here) < here.heapBytesMax / 2);
  });

  test("results, requests, watches and keys fit beside it, for any number of shards", () => {
    for (const heapBytesMax of [256 * MiB, GiB, 4 * GiB, 16 * GiB])
      for (const shards of [1, 8, 64, 1_024]) {
        const memory = { heapBytesMax, machineBytes: 64 * GiB };
        const work = workBytesMax(memory);
        const settings = memorySettings(memory, shards);
        const { nodeRequestBytesMax = 0, heldBytesMax = 0, nodeUnreadBytesMax = 0, ringBytesMax = 0 } = settings;
        const besides = nodeRequestBytesMax + heldBytesMax + nodeUnreadBytesMax + ringBytesMax * shards;
        const all = work * 1.5 + 64 * MiB + besides;
        ok(all < 0.95 * heapBytesMax, `${shards} shards in ${heapBytesMax}: ${all}`);
        const keys = memoryLimits(work, shards).keyBytesInMemoryMax * shards;
        ok(keys <= Math.max(work / 8, shards * 256 * 1024));
      }
  });
});

test("refusing work is logged when it begins, while it continues, and when it ends", async () => {
  const clock = new ManualClock();
  const lines: string[] = [];
  const shedding = new Shedding({ clock, memory: new Memory(GiB), log: (line) => lines.push(line) });
  const shard = {} as HostedShard;
  const full: Rejection = { kind: "shard-full", what: "memory for tenant acme", retryAfterMs: 1_000 };
  shedding.refused(shard, full);
  shedding.refused(shard, full);
  shedding.refused(shard, { kind: "job-unknown", job: 1 });
  await clock.advance(60_000);
  await clock.advance(60_000);
  equal(lines.length, 3);
  match(lines[0] ?? "", /^new work is refused, for the first time now: no room for memory for tenant acme \(memory/);
  match(lines[1] ?? "", /^new work is refused, 1 times in the last minute/);
  match(lines[2] ?? "", /new work is accepted again/);
  equal(shedding.refusals, 2);
  shedding.refused(shard, { kind: "queue-full", tenant: "acme", queuedMax: 5, retryAfterMs: 1 });
  match(lines[3] ?? "", /tenant acme has 5 tasks waiting/);
  shedding.close();
  await clock.advance(120_000);
  deepEqual(lines.length, 4);
});
