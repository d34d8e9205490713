/** Items 46, 61 to 66, 68 and 69: equal actions, the cache between them, priorities, and the metadata of a run. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import {
  RequestMetadata,
  type ActionResult,
  type ExecutedActionMetadata,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { Operations, type Operation } from "#wire/generated/google/longrunning/operations.ts";
import type { Timestamp } from "#wire/generated/google/protobuf/timestamp.ts";
import { encode } from "#wire/message.ts";
import {
  begin,
  isCached,
  isExecuting,
  metadataOf,
  onWorkers,
  outputText,
  ranWell,
  refusal,
  run,
  sh,
  type Asking,
} from "#e2e/conformance/actions.ts";
import { at, needs, type Case } from "#e2e/conformance/case.ts";
import { leaveWhen } from "./operations.ts";
import {
  code,
  freshAction,
  nothing,
  outputFile,
  result as resultOf,
  until,
  update,
  type Lab,
} from "#e2e/conformance/lab.ts";

/** Prints something else each time it runs. */
const dice = "cat /proc/sys/kernel/random/uuid > o";
const making = { command: { outputPaths: ["o"] } };
const prioritized = (priority: number): Asking => ({ executionPolicy: { priority } });

const rolled = (lab: Lab, result: ActionResult): Promise<string> => outputText(lab, result, "o");

const marks = [
  "queuedTimestamp",
  "workerStartTimestamp",
  "inputFetchStartTimestamp",
  "inputFetchCompletedTimestamp",
  "executionStartTimestamp",
  "executionCompletedTimestamp",
  "outputUploadStartTimestamp",
  "outputUploadCompletedTimestamp",
  "workerCompletedTimestamp",
] as const satisfies readonly (keyof ExecutedActionMetadata)[];

const msOf = ({ seconds, nanos }: Timestamp): number => seconds * 1_000 + nanos / 1e6;

/** The order in which waiting actions of a caller with one slot started. */
async function orderOf(lab: Lab, wishes: readonly { readonly name: string; readonly priority: number }[]) {
  const client = needs(lab.narrow, "somebody whose actions run one at a time");
  const narrow = { ...lab, client };
  const begun: string[] = [];
  const { ended } = await begin(narrow, await sh(narrow, "sleep 2"));
  const named = new Map<string, Promise<Awaited<ReturnType<typeof sh>>>>();
  const all: Promise<unknown>[] = [];
  for (const { name, priority } of wishes) {
    if (!named.has(name)) named.set(name, sh(narrow, `sleep 0.2 # ${name}`));
    const action = await (named.get(name) ?? sh(narrow, "true"));
    const waits = Promise.withResolvers<void>();
    const each = async (one: Operation): Promise<void> => {
      waits.resolve();
      if (isExecuting(one) && !begun.includes(name)) begun.push(name);
    };
    all.push(run(narrow, action, { ...prioritized(priority), each }));
    await waits.promise;
  }
  await Promise.all([ended, ...all]);
  return begun;
}

export const sharingCases: readonly Case[] = [
  at(46, "of updates at once one counts, as a whole", async (lab) => {
    const action = freshAction();
    const names = Array.from({ length: 20 }, (_, i) => `o${i}`);
    const sets = names.map((name) => [outputFile(`${name}/a`, nothing), outputFile(`${name}/b`, nothing)]);
    await Promise.all(sets.map((outputFiles) => update(lab, action, { outputFiles })));
    const { outputFiles } = await resultOf(lab, action);
    const [first = ""] = outputFiles.map(({ path }) => path.split("/")[0] ?? "");
    ok(names.includes(first));
    deepEqual(
      outputFiles.map(({ path }) => path),
      [`${first}/a`, `${first}/b`],
    );
  }),
  onWorkers(61, "a result is taken from the cache, and said to be", async (lab) => {
    const action = await sh(lab, dice, making);
    const first = await ranWell(lab, action);
    const second = await ranWell(lab, action);
    deepEqual([first.response.cachedResult, second.response.cachedResult], [false, true]);
    equal(await rolled(lab, second.result), await rolled(lab, first.result));
  }),
  onWorkers(61, "skip_cache_lookup runs it again, and what comes of it replaces the old", async (lab) => {
    const action = await sh(lab, dice, making);
    const first = await rolled(lab, (await ranWell(lab, action)).result);
    const again = await ranWell(lab, action, { skipCacheLookup: true });
    equal(again.response.cachedResult, false);
    const second = await rolled(lab, again.result);
    ok(second !== first, "it ran again");
    equal(await rolled(lab, (await ranWell(lab, action)).result), second);
    equal(await rolled(lab, await resultOf(lab, action)), second);
  }),
  onWorkers(61, "who skips the cache joins a run that is under way: nothing in the cache is newer", async (lab) => {
    const action = await sh(lab, `sleep 1.5; ${dice}`, making);
    const { ended } = await begin(lab, action);
    const joined = await ranWell(lab, action, { skipCacheLookup: true });
    equal(joined.response.cachedResult, false);
    equal(await rolled(lab, joined.result), await rolled(lab, (await ended).result), "one run");
  }),
  onWorkers(62, "what is not to be cached is not, and is run each time", async (lab) => {
    const action = await sh(lab, dice, { ...making, action: { doNotCache: true } });
    const first = await rolled(lab, (await ranWell(lab, action)).result);
    equal(await isCached(lab, action), false);
    const { response, result } = await ranWell(lab, action);
    equal(response.cachedResult, false);
    ok((await rolled(lab, result)) !== first, "it ran again");
  }),
  onWorkers(62, "what is not to be cached is not shared either", async (lab) => {
    const action = await sh(lab, `sleep 0.5; ${dice}`, { ...making, action: { doNotCache: true } });
    const both = await Promise.all([ranWell(lab, action), ranWell(lab, action)]);
    const [one, other] = await Promise.all(both.map(({ result }) => rolled(lab, result)));
    ok(one !== other, "two runs");
  }),
  onWorkers(63, "equal actions at once are one run, and for nobody a cached one", async (lab) => {
    const action = await sh(lab, `sleep 1; ${dice}`, making);
    const all = await Promise.all([ranWell(lab, action), ranWell(lab, action), ranWell(lab, action)]);
    const values = await Promise.all(all.map(({ result }) => rolled(lab, result)));
    equal(new Set(values).size, 1, "one run");
    for (const { response } of all) equal(response.cachedResult, false, "68: it was run for all of them");
  }),
  onWorkers(63, "who leaves takes nothing from those who stay", async (lab) => {
    const line = `sleep 1.5; ${dice}`;
    const action = await sh(lab, line, making);
    const leave = new AbortController();
    const leaving = run(lab, action, { options: { signal: leave.signal } }).catch(() => "left");
    const staying = ranWell(lab, action, { each: async () => leave.abort(new Error("leaves")) });
    equal(await leaving, "left");
    ok((await rolled(lab, (await staying).result)).length > 30);
  }),
  onWorkers(63, "what nobody waits for is given up after a while", async (lab) => {
    const graceMs = needs(lab.leaveGraceMs, "to know how long actions go on that nobody waits for");
    const name = await leaveWhen(lab, "sleep 50", isExecuting);
    const deadline = Date.now() + graceMs + 10_000;
    const { getOperation } = Operations.methods;
    await until("it is given up", async () => {
      ok(Date.now() < deadline, "it goes on");
      return (await lab.client.unary(getOperation, { name })).done;
    });
  }),
  onWorkers(63, "instances have runs of their own", async (lab) => {
    const instance = `${lab.instance === "" ? "" : `${lab.instance}-`}other-${randomUUID()}`;
    const other = { ...lab, instance };
    const action = await sh(lab, `sleep 0.7; ${dice}`, making);
    const here = ranWell(lab, action);
    const there = await refusal(other, action);
    const unknown: readonly number[] = [code.notFound, code.denied, code.invalid];
    if (unknown.includes(there.code)) return void (await here); // there is one instance only
    equal(there.code === 0 || there.code === code.precondition, true, there.message);
    if (there.code === 0)
      ok((await rolled(lab, (await here).result)) !== (await rolled(lab, await resultOf(other, action))), "two runs");
    await here;
  }),
  onWorkers(63, "who comes later and is in a hurry hurries all", async (lab) => {
    const begun = await orderOf(lab, [
      { name: "joined", priority: 50 },
      { name: "middle", priority: 0 },
      { name: "joined", priority: -50 },
    ]);
    deepEqual(begun, ["joined", "middle"]);
  }),
  onWorkers(64, "priorities are advertised; those outside are refused or taken for the nearest", async (lab) => {
    const ranges = lab.capabilities.executionCapabilities?.executionPriorityCapabilities?.priorities ?? [];
    ok(ranges.length > 0, "no range: clients send no priority but 0");
    for (const { minPriority, maxPriority } of ranges) ok(minPriority <= maxPriority);
    const outside = 1 + Math.max(...ranges.map(({ maxPriority }) => maxPriority));
    const { code: got } = await refusal(lab, await sh(lab, "true"), prioritized(outside));
    ok(got === 0 || got === code.invalid, `priority ${outside}: ended with ${got}`);
    for (const { minPriority, maxPriority } of ranges)
      for (const priority of [minPriority, maxPriority])
        await ranWell(lab, await sh(lab, "true"), prioritized(priority));
  }),
  onWorkers(64, "the lower number comes first", async (lab) => {
    const begun = await orderOf(lab, [
      { name: "last", priority: 20 },
      { name: "first", priority: -20 },
      { name: "second", priority: 0 },
    ]);
    deepEqual(begun, ["first", "second", "last"]);
  }),
  onWorkers(66, "what all heard is what is in the cache", async (lab) => {
    const action = await sh(lab, `sleep 0.5; ${dice}`, making);
    const asking = { skipCacheLookup: true };
    const all = await Promise.all(Array.from({ length: 5 }, () => ranWell(lab, action, asking)));
    const values = await Promise.all(all.map(({ result }) => rolled(lab, result)));
    deepEqual(new Set([...values, await rolled(lab, await resultOf(lab, action))]).size, 1);
  }),
  onWorkers(68, "times are told, and none before the one that comes first", async (lab) => {
    const { result, operations } = await ranWell(lab, await sh(lab, "sleep 0.1; echo > o", making));
    const told = result.executionMetadata;
    ok(told && told.worker !== "", "which worker ran it");
    const times = marks.map((mark) => told[mark]);
    ok(times.every(Boolean), `all of ${marks.join(", ")}`);
    const ms = times.map((time) => (time ? msOf(time) : 0));
    for (const [i, at] of ms.entries()) ok(i === 0 || at >= (ms[i - 1] ?? 0), `${marks[i]} before ${marks[i - 1]}`);
    ok((ms[5] ?? 0) - (ms[4] ?? 0) >= 99, "the execution took its time");
    ok(Math.abs((ms[0] ?? 0) - Date.now()) < 120_000, "and it was now");
    ok(operations.every((operation) => metadataOf(operation).actionDigest));
  }),
  onWorkers(68, "of a cached result, the times are those of its run", async (lab) => {
    const action = await sh(lab, "true");
    const first = await ranWell(lab, action);
    const second = await ranWell(lab, action);
    deepEqual(
      second.result.executionMetadata?.executionStartTimestamp,
      first.result.executionMetadata?.executionStartTimestamp,
    );
  }),
  ...(["absent", "of another kind", "no message", "complete"] as const).map((kind) =>
    onWorkers(69, `request metadata that is ${kind} harms nobody`, async (lab) => {
      const options = { metadata: metadataFor(kind) };
      await ranWell(lab, await sh(lab, "true"), { options });
    }),
  ),
];

function metadataFor(kind: "absent" | "of another kind" | "no message" | "complete"): [string, Buffer | string][] {
  const name = "build.bazel.remote.execution.v2.requestmetadata";
  if (kind === "absent") return [];
  if (kind === "of another kind") return [[name, "text"]];
  if (kind === "no message") return [[`${name}-bin`, Buffer.from("ffffffffffffffffff", "hex")]];
  const metadata: RequestMetadata = {
    actionId: randomUUID(),
    toolInvocationId: randomUUID(),
    correlatedInvocationsId: randomUUID(),
    actionMnemonic: "Grind",
    targetId: "//mill:stones",
    configurationId: "fine",
    toolDetails: { toolName: "conformance", toolVersion: "1" },
  };
  return [[`${name}-bin`, encode(RequestMetadata, metadata)]];
}
