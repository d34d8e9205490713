// Whatever a caller sends, the node answers or refuses it, and keeps serving all others.
import { equal } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import type { ShardRequest, WatchRequest } from "#shard/transport/protocol.ts";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { connectTo } from "#app/testing/remote.ts";
import { orderFromCommand } from "#app/job-order.ts";
import { systemClock } from "#door/system-clock.ts";

const kinds = [
  "submit",
  "cancel",
  "signal",
  "reserve",
  "start",
  "renew",
  "report",
  "commit",
  "record-plan",
  "fail",
  "release",
  "checkpoint",
  "leave",
  "invalidate",
  "drain",
  "resume",
  "set-tenant",
  "lend-quota",
  "take-quota",
  "forget",
  "take-over",
  "tick",
  "nonsense",
];
const fields = [
  "tenant",
  "door",
  "name",
  "job",
  "stage",
  "stages",
  "task",
  "token",
  "executor",
  "claims",
  "steps",
  "result",
  "evidence",
  "plan",
  "signal",
  "offers",
  "count",
  "nonce",
  "prefer",
  "start",
  "spec",
  "priority",
  "payloadHash",
  "deadlineMs",
  "lock",
  "reuse",
  "jobs",
  "epoch",
  "node",
];

const value = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(0, 1, -1, "", [], {}, null, 1e300, "x".repeat(2_000)),
);
const command = fc
  .tuple(fc.constantFrom(...kinds), fc.dictionary(fc.constantFrom(...fields), value, { maxKeys: 8 }))
  .map(([kind, rest]) => ({ ...rest, kind }));
const shard = fc.oneof(fc.integer({ min: 0, max: 1 }), value);
const request = fc.oneof(
  fc.record({ kind: fc.constant("command"), shard, command, waitMs: fc.constantFrom<unknown>(0, -1, "1", null) }),
  fc.record({
    kind: fc.constant("query"),
    shard,
    query: fc.dictionary(fc.constantFrom("kind", "job", "task", "limit", "before", "token"), value),
  }),
  fc.record({
    kind: fc.constant("query"),
    shard,
    query: fc.record({
      kind: fc.constantFrom("job", "jobs", "task", "why", "plan-inputs", "executors", "stats"),
      job: value,
      limit: value,
    }),
  }),
  value,
);

test("junk is answered or refused, and affects no other caller", { timeout: 120_000 }, async () => {
  const path = await mkdtemp(join(tmpdir(), "millrace-junk-"));
  const edge = { listen: [] };
  const config = Config.parse({ cluster: { shards: 2 }, journal: { kind: "memory" }, blobs: { kind: "memory" }, edge });
  const running = await startNode(config, dataFolder(path), { log: () => {} });
  const direct = createTcpTransport({ clock: systemClock });
  try {
    const { address } = running.node;
    for (const [turn, junk] of fc.sample(request, { numRuns: 600, seed: 7 }).entries()) {
      const patience = AbortSignal.timeout(20_000);
      await direct.request(address, junk as ShardRequest, patience).catch(() => {});
      if (turn % 5 === 0) await direct.call(address, "history.jobs", junk, patience).catch(() => {});
      if (turn % 5 === 1) await firstOf(direct.watch(address, junk as WatchRequest, patience)).catch(() => {});
      equal(patience.aborted, false, `no answer to ${JSON.stringify(junk)}`);
    }
    await using remote = connectTo(address);
    const { jobId } = await remote.work.submit(orderFromCommand(["true"], { tenant: "t" }));
    for await (const message of remote.work.watch(jobId, AbortSignal.timeout(60_000)))
      if (message.kind === "end") break;
    equal((await remote.work.job(jobId)).view.phase, "SUCCEEDED");
  } finally {
    await direct.close();
    await running.stop();
    await rm(path, { recursive: true });
  }
});

async function firstOf<T>(messages: AsyncIterable<T>): Promise<T | undefined> {
  for await (const message of messages) return message;
  return undefined;
}
