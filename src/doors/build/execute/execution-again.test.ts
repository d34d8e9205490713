/** An action that is requested again just as it ends is not run once more: by Execute, and by WaitExecution. */
import { deepEqual, equal, fail, rejects } from "node:assert/strict";
import { after, describe, test } from "node:test";
import { realClock as clock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import type { Granted } from "#shard/client/executor.ts";
import { testCluster, type TestShard } from "#shard/testing/client.ts";
import {
  Action,
  ActionResult,
  Command,
  Directory,
  ExecuteResponse,
  type ExecuteRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Operation } from "#wire/generated/google/longrunning/operations.ts";
import { decode, encode } from "#wire/message.ts";
import { ActionCacheService } from "#doors/build/cache/action-cache.ts";
import type { BuildAction } from "#doors/build/caller.ts";
import { wireOf } from "#doors/build/digests.ts";
import type { BuildCall, BuildPorts } from "#doors/build/call.ts";
import { executionSettingsDefault } from "./execution-settings.ts";
import { ExecutionService } from "./execution.ts";
import { taskLabel } from "#doors/build/plan.ts";
import { buildPublisher, publicationText } from "./publish.ts";
import { outcomeText } from "#doors/build/run/outcome.ts";
import { buildSettingsDefault } from "#doors/build/settings.ts";
import { TenantTrees } from "#doors/build/cache/tenant-trees.ts";
import { noCommand, resultPrinting } from "#doors/build/testing/build.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";

const enough = new AbortController();
const call: BuildCall = {
  caller: { tenant: "mill", principal: "miller", may: () => true, refusal: () => undefined },
  headers: { get: () => undefined },
  signal: enough.signal,
  metadata: undefined,
};

const made = resultPrinting("flour");

/** The real kernel and door over stores in memory; `before` runs just before an operation. */
async function rig(before: { inputs?: () => Promise<void>; join?: () => Promise<void> } = {}) {
  const { client, shards } = await testCluster(clock);
  const shard = shards[0] as TestShard;
  const inner = createMemoryStore({ clock, sizeBytesMax: 1e6 });
  const index = createMemoryIndex();
  const { blobs } = inner.forTenant("mill");
  const put = async (bytes: Uint8Array): Promise<Digest> => {
    await blobs.write(digestOf(bytes), bytes);
    return digestOf(bytes);
  };
  const looking: BlobStore = {
    ...blobs,
    async missing(digests) {
      await before.inputs?.();
      return await blobs.missing(digests);
    },
  };
  const store: Store = { ...inner, forTenant: () => ({ ...inner.forTenant("mill"), blobs: looking }) };
  const trust = new TrustRules(index);
  const ports: BuildPorts = { clock, store, index, trust, settings: buildSettingsDefault, report: () => {} };
  const results = new ActionCacheService(ports);
  const execution = {
    client: {
      ...client,
      async join(...joining: Parameters<typeof client.join>) {
        await before.join?.();
        return await client.join(...joining);
      },
    },
    settings: executionSettingsDefault,
    trees: new TenantTrees(),
    hasWorkers: () => true,
  };
  const service = new ExecutionService(ports, execution, results);
  const command: Command = { ...noCommand, arguments: ["mill"] };
  const grain = { name: "grain", digest: wireOf(await put(Buffer.from("rye"))), isExecutable: false };
  const root: Directory = { files: [grain], directories: [], symlinks: [] };
  const action = await put(
    encode(Action, {
      commandDigest: wireOf(await put(encode(Command, command))),
      inputRootDigest: wireOf(await put(encode(Directory, root))),
      doNotCache: false,
      salt: new Uint8Array(),
    }),
  );

  /** A worker takes the task, completes it, and its result is published: then the job has ended. */
  async function finish(granted: Granted): Promise<void> {
    const response = { result: made, cachedResult: false, serverLogs: new Map(), message: "" };
    const kept = await put(encode(ExecuteResponse, response));
    const known = await put(encode(ActionResult, made));
    const publish = publicationText({ fn: "sha256", instance: "", action }, known);
    const outcome = { instance: "", action, response: kept, code: 0, exitCode: 0 };
    const result = { digests: [kept, known], payload: outcomeText(outcome), publish };
    await client.commit({ executor: "w", ...granted }, result);
    const about = { shard: 0, job: granted.job, task: granted.task, generation: granted.generation };
    const { spec } = granted;
    const refused = (_: unknown, why: string): void => fail(why);
    await buildPublisher({ index, wallMs: () => clock.wallMs(), refused })(
      { ...about, tenant: "mill", door: "build", spec, publish, result, committedAtMs: clock.wallMs() },
      call.signal,
    );
    await shard.request({ kind: "command", shard: 0, command: { kind: "published", ...about } });
  }
  const taken = async (): Promise<Granted> => {
    const [granted] = await client.reserve(0, {
      executor: "w",
      offers: [taskLabel, "pool=default"],
      count: 1,
      start: true,
    });
    if (!granted) throw new Error("there is nothing to do");
    return granted;
  };
  const request: ExecuteRequest = {
    instanceName: "",
    skipCacheLookup: false,
    actionDigest: wireOf(action),
    digestFunction: 0,
    inlineStdout: false,
    inlineStderr: false,
    inlineOutputFiles: [],
  };
  const jobs = (): number => shard.state.jobs.size;
  return { service, request, taken, finish, jobs, shard, index };
}

async function answer(stream: AsyncGenerator<Operation>): Promise<ExecuteResponse> {
  let last: Operation | undefined;
  for await (const operation of stream) last = operation;
  equal(last?.done, true);
  if (last?.result?.kind !== "response") throw new Error("it ended without a response");
  return decode(ExecuteResponse, last.result.value.value);
}

describe("an action that is requested again", { timeout: 90_000 }, () => {
  after(() => enough.abort());

  test("if its result becomes known while its inputs are checked, that is the answer", async () => {
    let inputs = async (): Promise<void> => {};
    const { service, request, taken, finish, jobs } = await rig({ inputs: () => inputs() });
    const first = service.execute(request, call);
    await first.next();
    const granted = await taken();
    inputs = async () => {
      inputs = async () => {};
      await finish(granted);
    };
    deepEqual(await answer(service.execute(request, call)), { ...(await answer(first)), cachedResult: true });
    equal(jobs(), 1);
  });

  test("if the first answer was lost and it has ended since, its result is the answer", async () => {
    const { service, request, taken, finish, jobs, shard } = await rig();
    const ask = shard.request.bind(shard);
    shard.request = async (asked, signal) => {
      const answered = await ask(asked, signal);
      if (asked.kind !== "command" || asked.command.kind !== "submit") return answered;
      shard.request = ask;
      await finish(await taken());
      throw new Fault("unknown-outcome", "ask shard", { why: "the connection is gone" });
    };
    equal((await answer(service.execute(request, call))).cachedResult, true);
    equal(jobs(), 1);
  });

  test("if neither shards nor the index can be reached for a while, the index is asked first", async () => {
    const { service, request, taken, finish, jobs, shard, index } = await rig();
    const ask = shard.request.bind(shard);
    const get = index.get.bind(index);
    let looks = 0;
    shard.request = async (asked, signal) => {
      const answered = await ask(asked, signal);
      if (asked.kind !== "command" || asked.command.kind !== "submit") return answered;
      shard.request = ask;
      await finish(await taken());
      index.get = async (key) => {
        looks += 1;
        if (looks < 3) throw new Fault("unavailable", "use the action index", {});
        return await get(key);
      };
      throw new Fault("unavailable", "ask shard", { why: "the network is cut" });
    };
    equal((await answer(service.execute(request, call))).cachedResult, true);
    equal(jobs(), 1);
  });

  test("during an outage of the index it is still submitted", async () => {
    const { service, request, taken, finish, jobs, index } = await rig({
      inputs: async () => {
        index.get = async () => {
          throw new Fault("unavailable", "use the action index", {});
        };
      },
    });
    const get = index.get.bind(index);
    const running = service.execute(request, call);
    await running.next();
    index.get = get;
    await finish(await taken());
    equal((await answer(running)).result?.exitCode, 0);
    equal(jobs(), 1);
  });

  test("by a caller that is gone before the answer comes: it does not count as waiting", async () => {
    const { service, request, shard } = await rig();
    const gone = new AbortController();
    const ask = shard.request.bind(shard);
    shard.request = async (asked, signal) => {
      const answered = await ask(asked, signal);
      if (asked.kind === "command" && asked.command.kind === "submit") gone.abort();
      return answered;
    };
    const stream = service.execute(request, { ...call, signal: gone.signal });
    await stream.next().catch(() => {});
    await stream.return(undefined);
    const [job] = shard.state.jobs.values();
    await until("nobody counts", () => job?.audience?.subscribers.size === 0, { limitMs: 60_000 });
  });

  test("by name just as it ends: nothing new starts, and the caller gets the answer", async () => {
    let join = async (): Promise<void> => {};
    const { service, request, taken, finish, jobs } = await rig({ join: () => join() });
    const first = service.execute(request, call);
    const begun = await first.next();
    const granted = await taken();
    join = () => finish(granted);
    const waited = await answer(service.wait({ name: begun.value?.name ?? "" }, call));
    deepEqual(waited, await answer(first));
    equal(jobs(), 1);
  });

  test("by name just as it ends and starts again: the caller counts for the named one", async () => {
    let join = async (): Promise<void> => {};
    const { service, request, taken, finish, shard } = await rig({ join: () => join() });
    const first = service.execute(request, call);
    const begun = await first.next();
    const granted = await taken();
    const anew = service.execute({ ...request, skipCacheLookup: true }, call);
    join = async () => {
      await finish(granted);
      await anew.next();
    };
    equal((await answer(service.wait({ name: begun.value?.name ?? "" }, call))).result?.exitCode, 0);
    const [, second] = shard.state.jobs.values();
    await until("one counts", () => second?.audience?.subscribers.size === 1, { limitMs: 60_000 });
    await Promise.all([answer(first), anew.return(undefined)]);
  });

  test("by name by a caller that is gone before the answer comes: it no longer counts", async () => {
    const { service, request, shard, taken, finish } = await rig();
    const first = service.execute(request, call);
    const begun = await first.next();
    const granted = await taken();
    const gone = new AbortController();
    const ask = shard.request.bind(shard);
    shard.request = async (asked, signal) => {
      const answered = await ask(asked, signal);
      if (asked.kind !== "command" || asked.command.kind !== "submit") return answered;
      gone.abort();
      throw new Fault("unknown-outcome", "ask shard", { why: "the connection is gone" });
    };
    const waiting = service.wait({ name: begun.value?.name ?? "" }, { ...call, signal: gone.signal });
    await rejects(waiting.next());
    const [job] = shard.state.jobs.values();
    await until("only the first counts", () => job?.audience?.subscribers.size === 1, { limitMs: 60_000 });
    await finish(granted);
    await answer(first);
  });

  test("by name by a caller that may only read: it gets the state, and is not subscribed", async () => {
    let joins = 0;
    const { service, request, taken, finish } = await rig({ join: async () => void (joins += 1) });
    const first = service.execute(request, call);
    const begun = await first.next();
    const granted = await taken();
    const caller = { ...call.caller, may: (action: BuildAction) => action === "work.read" };
    const waiting = service.wait({ name: begun.value?.name ?? "" }, { ...call, caller });
    await waiting.next();
    await finish(granted);
    equal((await answer(waiting)).result?.exitCode, 0);
    equal(joins, 0);
    await answer(first);
  });

  test("by name while it runs: the caller counts as waiting, although the first one has left", async () => {
    const { service, request, taken, finish, jobs, shard } = await rig();
    const first = service.execute({ ...request, executionPolicy: { priority: -5 } }, call);
    const begun = await first.next();
    const granted = await taken();
    const waiting = service.wait({ name: begun.value?.name ?? "" }, call);
    await waiting.next();
    const [job] = shard.state.jobs.values();
    equal(job?.audience?.subscribers.size, 2);
    await first.return(undefined);
    await until("the first has left", () => job?.audience?.subscribers.size === 1, { limitMs: 60_000 });
    equal(job?.priority, 5);
    await finish(granted);
    equal((await answer(waiting)).result?.exitCode, 0);
    equal(jobs(), 1);
  });
});
