/** A node with a configured queue limit. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { test } from "node:test";
import { detailsOf, grpcCode, isGrpcError, type GrpcError } from "#grpc/status.ts";
import { until } from "#testing/until.ts";
import { RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { Bench, Lab } from "#e2e/node/build/execution-lab.ts";

const skip = process.platform === "linux" ? false : "needs linux: actions are run there only";

test("REAPI-64: beyond cluster.tasksMax work is refused, with when to try again", { skip }, async () => {
  await using lab = await Lab.open({ cluster: { shards: 1, tasksMax: 2 }, worker: { slots: 1 } });
  const bench = new Bench(lab.client());
  const slow = await Promise.all(Array.from({ length: 4 }, (_, no) => bench.sh(`sleep 1; : ${no}`)));
  const runs = Promise.allSettled(slow.map((action) => bench.execute(action)));
  const shard = () => lab.node?.node.status().shards[0];
  await until("one runs and one waits", () => shard()?.claims === 1 && shard()?.ready.length === 1);
  const [waiting] = shard()?.ready ?? [];
  equal(waiting?.tasks, 1);
  match(waiting?.requires.join(" ") ?? "", /door=/);
  const all = await runs;
  const full = all.flatMap((run) => (run.status === "rejected" ? [run.reason as GrpcError] : []));
  deepEqual([all.length, full.length], [4, 2]);
  for (const error of full) {
    ok(isGrpcError(error, grpcCode.resourceExhausted));
    equal(detailsOf(error, RetryInfo).length, 1);
  }
});
