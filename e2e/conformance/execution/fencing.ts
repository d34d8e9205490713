/**
 * Items 46, 63, 65 and 66 from inside: a worker whose claim was lost publishes nothing, and affects no other worker.
 * With Millrace's own work protocol.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { digestText } from "#base/digest.ts";
import { publicationText } from "#doors/build/execute/publish.ts";
import { outcomeText } from "#doors/build/run/outcome.ts";
import {
  ActionResult,
  ExecuteResponse,
  type Digest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import type { Grant } from "#wire/generated/millrace/work/v1/model.ts";
import { encode } from "#wire/message.ts";
import { onWorkers, run, sh } from "#e2e/conformance/actions.ts";
import { needs, type Case } from "#e2e/conformance/case.ts";
import {
  codeOf,
  emptyResult,
  isThere,
  outputFile,
  result as resultOf,
  until,
  upload,
  type Lab,
} from "#e2e/conformance/lab.ts";

const { reserve, start, commit, getPartitionMap } = Work.methods;

/** What a worker would commit: the answer and the result are in the store, and are to be published. */
async function resultFor(lab: Lab, action: Digest, text: string) {
  const file = await upload(lab, Buffer.from(text));
  const result: ActionResult = { ...emptyResult, outputFiles: [outputFile("o", file)] };
  const response: ExecuteResponse = { cachedResult: false, serverLogs: new Map(), message: "", result };
  const [resultBlob, responseBlob] = [
    await upload(lab, encode(ActionResult, result)),
    await upload(lab, encode(ExecuteResponse, response)),
  ];
  const name = ({ hash, sizeBytes }: Digest): string => digestText("sha256", hash, sizeBytes);
  const of = { instance: lab.instance, action: name(action) };
  return {
    payload: outcomeText({ ...of, response: name(responseBlob), code: 0, exitCode: 0 }),
    digests: [resultBlob, responseBlob, file].map(name),
    publish: publicationText({ ...of, fn: "sha256" }, name(resultBlob)),
  };
}

type Reserved = { readonly shard: number; readonly grant: Grant };

const claim = ({ grant: { task, token }, shard }: Reserved, executor: string) => ({ shard, executor, task, token });

/** Asks all shards until one has the task. */
async function reserved(lab: Lab, executor: string, pool: string): Promise<Reserved> {
  const client = needs(lab.executor, "somebody who may do tasks");
  const { shards } = await client.unary(getPartitionMap, {});
  let found: Reserved | undefined;
  await until(
    "the task is given out",
    async () => {
      for (let shard = 0; shard < shards; shard += 1) {
        const offers = ["door=build", `pool=${pool}`];
        const started = { start: false, startPure: false };
        const asked = { shard, executor, offers, prefer: [], count: 1, ...started, nonce: `${executor}-${shard}` };
        const { grants } = await client.unary(reserve, asked);
        if (grants[0]) found = { shard, grant: grants[0] };
      }
      return found !== undefined;
    },
    30_000,
  );
  ok(found);
  return found;
}

export const fencingCases: readonly Case[] = [
  onWorkers(46, "a worker whose claim ran out publishes nothing; the one after it does", async (lab) => {
    const client = needs(lab.executor, "somebody who may do tasks by the work protocol");
    const pool = `fence-${Date.now()}`;
    const properties = [{ name: "Pool", value: pool }];
    const action = await sh(lab, "never run by a shell", { action: { platform: { properties } } });
    const waiting = run(lab, action);
    const first = await reserved(lab, "worker/slow", pool);
    await client.unary(start, claim(first, "worker/slow"));
    // It falls silent. When its lease has expired, another worker gets the task.
    const second = await reserved(lab, "worker/next", pool);
    ok(second.grant.token > first.grant.token, "65: under a newer token");
    await client.unary(start, claim(second, "worker/next"));
    const stale = await resultFor(lab, action, "stale");
    ok((await codeOf(client.unary(commit, { ...claim(first, "worker/slow"), result: stale }))) !== 0, "refused");
    ok(
      (await codeOf(client.unary(commit, { ...claim(second, "worker/slow"), result: stale }))) !== 0,
      "another's token",
    );
    ok((await codeOf(resultOf(lab, action))) !== 0, "nothing was published");
    const fine = await resultFor(lab, action, "fine");
    await client.unary(commit, { ...claim(second, "worker/next"), result: fine });
    const { result } = await waiting;
    deepEqual(result.outputFiles, (await resultOf(lab, action)).outputFiles, "66: heard and published are the same");
    const [file] = result.outputFiles;
    equal(await isThere(lab, file?.digest ?? { hash: "", sizeBytes: 0 }), true);
    equal(file?.digest?.sizeBytes, "fine".length);
    ok(
      (await codeOf(client.unary(commit, { ...claim(first, "worker/slow"), result: stale }))) !== 0,
      "and still refused",
    );
  }),
  onWorkers(63, "those who share a run share the next one when its worker is lost", async (lab) => {
    const client = needs(lab.executor, "somebody who may do tasks by the work protocol");
    const pool = `shared-${Date.now()}`;
    const properties = [{ name: "Pool", value: pool }];
    const action = await sh(lab, "never run by a shell", { action: { platform: { properties } } });
    const waiting = [run(lab, action), run(lab, action), run(lab, action)];
    const first = await reserved(lab, "worker/lost", pool);
    await client.unary(start, claim(first, "worker/lost"));
    // It falls silent, and none of the three may be asked again.
    const second = await reserved(lab, "worker/found", pool);
    equal(second.grant.task, first.grant.task, "one task for all of them");
    await client.unary(start, claim(second, "worker/found"));
    const result = await resultFor(lab, action, "found");
    await client.unary(commit, { ...claim(second, "worker/found"), result });
    const all = await Promise.all(waiting);
    equal(new Set(all.map(({ name }) => name)).size, 1, "one operation");
    for (const { result: heard, response } of all) {
      equal(heard.outputFiles[0]?.digest?.sizeBytes, "found".length);
      equal(response.cachedResult, false, "68");
    }
  }),
];
