/** What a third-party executor can do with its claims, and what it cannot. */
import { deepEqual, equal, fail, match, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { digestText } from "#base/digest.ts";
import { publicationText } from "#doors/build/execute/publish.ts";
import { outcomeText } from "#doors/build/run/outcome.ts";
import { resultPrinting } from "#doors/build/testing/build.ts";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import {
  ActionCache,
  ActionResult,
  type Digest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Grant } from "#wire/generated/millrace/work/v1/model.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import { encode } from "#wire/message.ts";
import { until } from "#testing/until.ts";
import { Bench, Lab, secrets, tokensFor } from "#e2e/node/build/execution-lab.ts";

const { reserve, commit } = Work.methods;
const executor = "mill";
const offers = ["door=build", "pool=default"];
const made = resultPrinting("chaff");
const nameOf = ({ hash, sizeBytes }: Digest): string => digestText("sha256", hash, sizeBytes);

describe("a third-party executor", { timeout: 60_000 }, () => {
  let lab: Lab;
  let bench: Bench;
  before(async () => {
    const tokens = tokensFor(["member", "executor"]).map((token) => ({ ...token, pools: ["default"] }));
    lab = await Lab.open({
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      worker: { enabled: false },
    });
    bench = new Bench(lab.client(secrets.mill));
  });
  after(async () => await lab[Symbol.asyncDispose]());

  async function claimed(): Promise<{ readonly shard: number; readonly grant: Grant }> {
    const found: { readonly shard: number; readonly grant: Grant }[] = [];
    await until("a task is given out", async () => {
      for (const shard of [0, 1]) {
        const nonce = randomUUID();
        const wanted = { start: true, startPure: false, prefer: [], count: 1, nonce };
        const { grants } = await bench.grpc.unary(reserve, { shard, executor, offers, ...wanted });
        found.push(...grants.map((grant) => ({ shard, grant })));
      }
      return found.length > 0;
    });
    return found[0] ?? fail();
  }

  const cached = async (actionDigest: Digest): Promise<boolean> => {
    const wanted = { inlineStdout: false, inlineStderr: false, inlineOutputFiles: [], digestFunction: 0 };
    return await bench.grpc
      .unary(ActionCache.methods.getActionResult, { instanceName: "", actionDigest, ...wanted })
      .then(
        () => true,
        (error: unknown) => (isGrpcError(error, grpcCode.notFound) ? false : Promise.reject(error as Error)),
      );
  };

  /** Commits a result for the one action, and asks to publish it for the other. */
  async function doneFor(mine: Digest, published: Digest): Promise<string> {
    const waiting = bench.execute(mine);
    const { shard, grant } = await claimed();
    const result = nameOf(await bench.put(encode(ActionResult, made)));
    const of = { instance: "", action: nameOf(mine), result, code: 0, exitCode: 0 };
    const publish = publicationText({ fn: "sha256", instance: "", action: nameOf(published) }, result);
    const { task, token } = grant;
    const brought = { payload: outcomeText(of), digests: [result], publish };
    await bench.grpc.unary(commit, { shard, executor, task, token, result: brought });
    const { response } = await waiting;
    return Buffer.from(response.result?.stdoutRaw ?? "").toString();
  }

  test("publishes its result for its own action", async () => {
    const action = await bench.sh("mine");
    equal(await doneFor(action, action), "chaff");
    equal(await cached(action), true);
  });

  test("takes no work of a pool that was not granted to it", async () => {
    const wanted = { start: true, startPure: false, prefer: [], count: 1, nonce: randomUUID() };
    const asked = { shard: 0, executor, offers: ["door=build", "pool=gpu"], ...wanted };
    await rejects(bench.grpc.unary(reserve, asked), (error) => isGrpcError(error, grpcCode.permissionDenied));
  });

  test("E4: publishes nothing for another action; its job still ends, and the refusal is reported", async () => {
    const [mine, others] = [await bench.sh("mine too"), await bench.sh("somebody else's")];
    equal(await doneFor(mine, others), "chaff");
    deepEqual([await cached(mine), await cached(others)], [false, false]);
    match(lab.log.join("\n"), /the result of t\d-\d+ is not published: it names another action/);
  });
});
