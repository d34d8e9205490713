/** Equal actions that builds and Execute calls want at the same time: one process runs for all of them. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Action, Command } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import {
  ActionState as State,
  Builds,
  type BuildAction,
  type BuildStatus,
} from "#wire/generated/millrace/build/v1/builds.ts";
import { completed, messagesOf } from "#doors/build/builds/action-messages.ts";
import { treeOf } from "#doors/build/builds/input-tree.ts";
import { encode } from "#wire/message.ts";
import { named } from "#worker/outputs/canonical.ts";
import { until } from "#testing/until.ts";
import { Bench, Lab, secrets, shAction, tokensFor } from "./execution-lab.ts";

const isLinux = process.platform === "linux";
const { submitBuild, getBuild, watchBuild, getAction } = Builds.methods;

/** Every run of it has a different output. */
const line = (seconds: number, then = "true"): string =>
  `cat /proc/sys/kernel/random/uuid > o; sleep ${seconds}; ${then} # ${randomUUID()}`;
const action = (text: string, more: Partial<BuildAction> = {}): BuildAction =>
  shAction("a", text, { outputPaths: ["o"], ...more });

describe("equal actions at the same time", { skip: !isLinux && "needs linux: the sandbox", timeout: 100_000 }, () => {
  let lab: Lab;
  let mill: Bench;
  let bakery: Bench;
  before(async () => {
    const edge = { listen: ["127.0.0.1:0"], identity: { tokens: tokensFor(["member"]) } };
    lab = await Lab.open({ cluster: { shards: 4 }, edge, worker: { slots: 4 } });
    [mill, bakery] = [new Bench(lab.client(secrets.mill)), new Bench(lab.client(secrets.bakery))];
  });
  after(async () => await lab[Symbol.asyncDispose]());

  const submit = async (given: BuildAction, { grpc }: Bench): Promise<string> => {
    const build = { name: randomUUID(), instanceName: "", actions: [given], deadlineMs: 0 };
    const submitted = await grpc.unary(submitBuild, {
      requestId: "",
      priority: 0,
      what: { kind: "build", value: build },
    });
    return submitted.buildId;
  };
  const status = async (buildId: string, { grpc }: Bench = mill): Promise<BuildStatus> =>
    await grpc.unary(getBuild, { buildId, withActions: true });
  const build = async (given: BuildAction, bench: Bench = mill): Promise<BuildStatus> => {
    const buildId = await submit(given, bench);
    for await (const _ of bench.grpc.serverStream(watchBuild, { buildId }));
    return await status(buildId, bench);
  };
  const made = async ({ buildId }: BuildStatus, { grpc }: Bench = mill): Promise<string> => {
    const { outputs } = await grpc.unary(getAction, { buildId, key: "a" });
    const [output] = outputs;
    return output?.made?.kind === "blob" ? output.made.value : "";
  };
  const statesOf = (builds: readonly BuildStatus[]): readonly number[] =>
    builds.flatMap(({ actions }) => actions.map(({ state }) => state)).toSorted((a, b) => a - b);
  /** Submits it, and waits until a worker has it. */
  const running = async (given: BuildAction): Promise<string> => {
    const buildId = await submit(given, mill);
    await until("it runs", async () => (await status(buildId)).actions[0]?.state === State.ACTION_STATE_RUNNING);
    return buildId;
  };

  test("of two builds are one process", async () => {
    const given = action(line(1));
    const builds = await Promise.all([build(given), build(given)]);
    deepEqual(
      statesOf(builds),
      [State.ACTION_STATE_SUCCEEDED, State.ACTION_STATE_CACHED].toSorted((a, b) => a - b),
    );
    const [first, second] = await Promise.all(builds.map((one) => made(one)));
    ok(first);
    equal(second, first);
  });

  /** Executes the action of a build as a client of the Remote Execution API would; returns its output. */
  const executed = async (given: BuildAction): Promise<string> => {
    const messages = messagesOf(given);
    const command = named(encode(Command, messages.command), "sha256");
    const { root, directories } = treeOf([]);
    for (const { bytes } of [...directories, command]) await mill.put(bytes);
    const { response } = await mill.execute(
      await mill.put(encode(Action, completed(messages.action, command.digest, root))),
    );
    const [output] = response.result?.outputFiles ?? [];
    return `${output?.digest?.hash}/${output?.digest?.sizeBytes}`;
  };

  test("of a build, and then of a call to execute, are one process", async () => {
    const given = action(line(1));
    const buildId = await running(given);
    const output = await executed(given);
    for await (const _ of mill.grpc.serverStream(watchBuild, { buildId }));
    equal(output, await made(await status(buildId)));
  });

  test("of a call to execute, and then of a build, are one process", async () => {
    const given = action(line(1));
    const output = executed(given);
    await until("it runs", () => lab.node?.worker?.status().running === 1);
    const built = await build(given);
    deepEqual(statesOf([built]), [State.ACTION_STATE_CACHED]);
    equal(await output, await made(built));
  });

  test("that fail are one process, too", async () => {
    const given = action(line(1, "exit 3"));
    const builds = await Promise.all([build(given), build(given)]);
    deepEqual(statesOf(builds), [State.ACTION_STATE_FAILED, State.ACTION_STATE_FAILED]);
    const messages = builds.map(({ actions }) => actions[0]?.message.replace(/^.*(result: \S+).*$/s, "$1"));
    equal(messages[0], messages[1]);
  });

  test("of two tenants are two", async () => {
    const given = action(line(1));
    const [one, other] = await Promise.all([build(given, mill), build(given, bakery)]);
    deepEqual(statesOf([one, other]), [State.ACTION_STATE_SUCCEEDED, State.ACTION_STATE_SUCCEEDED]);
    ok((await made(one, mill)) !== (await made(other, bakery)));
  });

  test("that are not to be cached, or not looked for there, are run for each", async () => {
    for (const more of [{ doNotCache: true }, { skipCacheLookup: true }]) {
      const given = action(line(1), more);
      const builds = await Promise.all([build(given), build(given)]);
      const [first, second] = await Promise.all(builds.map((one) => made(one)));
      ok(first && first !== second, JSON.stringify(more));
    }
  });
});
