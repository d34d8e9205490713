import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { grpcCode } from "#grpc/status.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import type { ActionSpec } from "#doors/build/plan.ts";
import { storeAnswer, type AnswerPorts } from "./answer.ts";
import { readAnswer, readOutcome } from "./outcome.ts";
import { actionClaim, resultPrinting } from "#doors/build/testing/build.ts";

const made = resultPrinting("flour");
const blobsOf = (count: number) => Array.from({ length: count }, (_, i) => `${String(i).padStart(64, "0")}/1`);

async function answered(digests: readonly string[]) {
  const { blobs } = createMemoryStore({ clock: new ManualClock(), sizeBytesMax: 1e7 }).forTenant("mill");
  const spec = { fn: "sha256", instance: "", action: `${"a".repeat(64)}/1`, merge: "m", doNotCache: false };
  const ports = { blobs, task: actionClaim, spec: spec as ActionSpec } as unknown as AnswerPorts;
  const outcome = await storeAnswer({ status: undefined, message: "", result: made, digests }, ports);
  ok(outcome.kind === "done");
  const at = readOutcome({ payload: outcome.payload, digests: [] });
  ok(at);
  return { outcome, answer: await readAnswer(at, blobs) };
}

describe("K3: everything that a result names is listed for pinning", () => {
  test("however much that is, each once", async () => {
    const digests = blobsOf(defaultLimits.digestsMax - 3);
    const { outcome, answer } = await answered([...digests, ...digests, `${"e".repeat(64)}/0`]);
    equal(answer.result?.exitCode, 0);
    ok(outcome.publish);
    deepEqual(outcome.digests?.slice(1), digests);
  });

  test("or there is no result: it says how much there is, and nothing is published", async () => {
    const { outcome, answer } = await answered(blobsOf(defaultLimits.digestsMax + 1));
    equal(outcome.publish, undefined);
    equal(outcome.digests?.length, 1);
    equal(answer.result, undefined);
    equal(answer.status?.code, grpcCode.resourceExhausted);
    match(answer.status?.message ?? "", /made 50001 different files and folders, and at most 49997 can be kept/);
  });
});
