/** Items 47 to 50 and 67: operations, waiting clients, and clients that come back. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { isGrpcError } from "#grpc/status.ts";
import { ExecutionStage_Value as Stage } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { Operations, type Operation } from "#wire/generated/google/longrunning/operations.ts";
import {
  begin,
  isExecuting,
  metadataOf,
  onWorkers,
  outputText,
  printed,
  ranWell,
  responseOf,
  run,
  seconds,
  sh,
  stream,
  wait,
  waitExecution,
} from "#e2e/conformance/actions.ts";
import { needs, Skip, type Case } from "#e2e/conformance/case.ts";
import { code, codeOf, digestOf, ends, fresh, until, type Lab } from "#e2e/conformance/lab.ts";

const { getOperation, listOperations, cancelOperation, deleteOperation } = Operations.methods;

/** The operations service is optional. */
async function offered<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (isGrpcError(error) && error.code === code.unimplemented) throw new Skip("needs the service of operations");
    throw error;
  }
}

/** Disconnects as soon as it has seen such an operation; returns its name. */
export async function leaveWhen(lab: Lab, line: string, isSo: (operation: Operation) => boolean): Promise<string> {
  const leave = new AbortController();
  let name = "";
  await rejects(async () => {
    for await (const operation of stream(lab, await sh(lab, line), { options: { signal: leave.signal } })) {
      ({ name } = operation);
      if (isSo(operation)) leave.abort(new Error("cut off"));
    }
  });
  ok(name !== "", "there was no message");
  return name;
}

export const operationCases: readonly Case[] = [
  onWorkers(47, "what is wrong with the request is the call's error", async (lab) => {
    const all = async (hash: string) => await Array.fromAsync(stream(lab, { hash, sizeBytes: 3 }));
    await ends(all("nonsense"), code.invalid, "Execute");
  }),
  onWorkers(47, "what goes wrong with the action is told in the response, and the call ends well", async (lab) => {
    const { operations, response } = await run(lab, await sh(lab, "exit 3"));
    equal(operations.at(-1)?.result?.kind, "response");
    equal(response.status?.code ?? 0, 0, "a command that failed is no failure to run it");
    equal(response.result?.exitCode, 3);
  }),
  onWorkers(48, "every message has a name and metadata, and only the last is done", async (lab) => {
    const action = await sh(lab, "sleep 0.5");
    const { operations, name } = await ranWell(lab, action);
    ok(name !== "", "the operation has a name");
    deepEqual(new Set(operations.map((operation) => operation.name)), new Set([name]));
    for (const [i, operation] of operations.entries()) {
      const { stage, actionDigest } = metadataOf(operation);
      deepEqual(actionDigest, action, "the action that it is about");
      equal(operation.done, stage === Stage.COMPLETED, "COMPLETED is done, and done is COMPLETED");
      equal(operation.done, i === operations.length - 1);
    }
  }),
  onWorkers(48, "the first message comes while the action runs, and stages go forward", async (lab) => {
    const { operations } = await ranWell(lab, await sh(lab, "sleep 1"));
    ok(operations.length >= 2, `${operations.length} messages`);
    equal(operations[0]?.done, false, "the first message says that it is not done");
    const order: readonly number[] = [Stage.UNKNOWN, Stage.CACHE_CHECK, Stage.QUEUED, Stage.EXECUTING, Stage.COMPLETED];
    const places = operations.map((operation) => order.indexOf(metadataOf(operation).stage));
    deepEqual(
      places,
      places.toSorted((a, b) => a - b),
      "no worker was lost",
    );
  }),
  onWorkers(49, "an operation that is done has a result, or says why there is none", async (lab) => {
    for (const line of ["true", "exit 1", "kill -9 $$"]) {
      const { response } = await run(lab, await sh(lab, line));
      ok(response.result || (response.status?.code ?? 0) !== 0, `${line}: neither result nor status`);
    }
  }),
  ...["operations/no-such-thing", "", "nonsense", randomUUID(), `operations/${randomUUID()}`].map((name) =>
    onWorkers(50, `nobody can wait for ${JSON.stringify(name.replace(/[0-9a-f-]{36}/, "<uuid>"))}`, async (lab) => {
      const waited = Array.fromAsync(lab.client.serverStream(waitExecution, { name }));
      await ends(waited, name === "" ? [code.notFound, code.invalid] : code.notFound, "WaitExecution");
    }),
  ),
  onWorkers(50, "who waits for what has ended is answered at once, with the same", async (lab) => {
    const { name, result } = await ranWell(lab, await sh(lab, "echo done > o", { command: { outputPaths: ["o"] } }));
    const again = await wait(lab, name);
    deepEqual([again.operations.length, again.operations[0]?.done], [1, true]);
    deepEqual(again.result.outputFiles, result.outputFiles);
  }),
  onWorkers(50, "who waits for what came from the cache is answered as before", async (lab) => {
    const action = await sh(lab, "echo done");
    await ranWell(lab, action);
    const { name, response } = await ranWell(lab, action);
    equal(response.cachedResult, true);
    const again = await wait(lab, name);
    deepEqual([again.operations[0]?.done, again.response.cachedResult], [true, true]);
    equal(await printed(lab, again.result, "stdout"), "done\n");
  }),
  onWorkers(50, "who was cut off waits again by name", async (lab) => {
    const line = "sleep 1; echo done";
    const { result } = await wait(lab, await leaveWhen(lab, line, () => true));
    equal(await printed(lab, result, "stdout"), "done\n");
  }),
  onWorkers(50, "what failed can be looked at for a while, with what it printed", async (lab) => {
    const line = "echo worn >&2; echo part > o; exit 9";
    const { name } = await run(lab, await sh(lab, line, { command: { outputPaths: ["o"] } }));
    const { result } = await wait(lab, name);
    equal(result.exitCode, 9);
    equal(await printed(lab, result, "stderr"), "worn\n");
    equal(await outputText(lab, result, "o"), "part\n");
  }),
  onWorkers(50, "an operation can be asked about while it runs and when it has ended", async (lab) => {
    let seen: Operation | undefined;
    let name = "";
    for await (const operation of stream(lab, await sh(lab, "sleep 1"))) {
      ({ name } = operation);
      if (!operation.done) seen ??= await offered(lab.client.unary(getOperation, { name }));
    }
    deepEqual([seen?.name, seen?.done], [name, false]);
    const ended = await lab.client.unary(getOperation, { name });
    deepEqual([ended.name, ended.done, responseOf(ended).result?.exitCode], [name, true, 0]);
    await ends(lab.client.unary(getOperation, { name: `${name}x` }), [code.notFound, code.invalid], "GetOperation");
  }),
  onWorkers(50, "operations are listed page by page, each once", async (lab) => {
    const names = new Set<string>();
    for (let i = 0; i < 3; i += 1) names.add((await ranWell(lab, await sh(lab, "true"))).name);
    const collection = lab.instance === "" ? "operations" : `${lab.instance}/operations`;
    const listed: string[] = [];
    for (let pageToken = "", pages = 0; (pages === 0 || pageToken !== "") && pages < 1_000; pages += 1) {
      const asked = { name: collection, filter: "", pageSize: 2, pageToken };
      const page = await offered(lab.client.unary(listOperations, asked));
      ok(page.operations.length <= 2, "a page is no larger than asked for");
      listed.push(...page.operations.map(({ name }) => name));
      pageToken = page.nextPageToken;
    }
    deepEqual(listed.length, new Set(listed).size);
    ok(names.isSubsetOf(new Set(listed)), "what ended a moment ago is listed");
  }),
  onWorkers(50, "an operation that was deleted is gone; or none can be", async (lab) => {
    const { name } = await ranWell(lab, await sh(lab, "true"));
    const got = await codeOf(lab.client.unary(deleteOperation, { name }));
    ok([0, code.unimplemented].includes(got), `DeleteOperation ended with ${got}`);
    if (got === 0) await ends(lab.client.unary(getOperation, { name }), code.notFound, "GetOperation");
  }),
  onWorkers(67, "an operation that is cancelled ends so, at once, and its command with it", async (lab) => {
    const started = Date.now();
    let last: Operation | undefined;
    for await (const operation of stream(lab, await sh(lab, "sleep 50; echo late"))) {
      last = operation;
      if (isExecuting(operation)) await offered(lab.client.unary(cancelOperation, { name: operation.name }));
    }
    ok(last?.done);
    equal(responseOf(last).status?.code, code.cancelled);
    ok(Date.now() - started < 40_000, "it did not wait for the command's own end");
  }),
  onWorkers(67, "what waits for a worker can be cancelled, too", async (lab) => {
    const client = needs(lab.narrow, "somebody whose actions run one at a time");
    const narrow = { ...lab, client };
    const { ended } = await begin(narrow, await sh(narrow, "sleep 2"));
    const name = await leaveWhen(narrow, "echo never", () => true);
    await offered(client.unary(cancelOperation, { name }));
    await until("it has ended", async () => (await client.unary(getOperation, { name })).done);
    equal(responseOf(await client.unary(getOperation, { name })).status?.code, code.cancelled);
    await ended;
  }),
  onWorkers(67, "to cancel what has ended changes nothing; to cancel what nobody knows is refused", async (lab) => {
    const { name } = await ranWell(lab, await sh(lab, "echo kept", { action: { timeout: seconds(60) } }));
    await offered(lab.client.unary(cancelOperation, { name }));
    equal((await wait(lab, name)).result.exitCode, 0);
    const unknown = `operations/${digestOf(fresh()).hash}`;
    await ends(lab.client.unary(cancelOperation, { name: unknown }), [code.notFound, code.invalid], "CancelOperation");
  }),
];
