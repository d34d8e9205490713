/** A build on three real nodes: the one it was submitted to and another are killed with -9, and it goes on. */
import { equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Processes } from "#e2e/chaos/processes.ts";
import { Fleet } from "#e2e/fleet/fleet.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { ContentAddressableStorage } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import {
  ActionState as State,
  BuildPhase as Phase,
  Builds,
  type Build,
  type BuildAction,
  type BuildStatus,
} from "#wire/generated/millrace/build/v1/builds.ts";

const postgres = await sharedPostgres();
const skip = postgres.skip || (process.platform !== "linux" && "needs linux: the sandbox");
const width = 12;
const layers = 4;

/** Each action takes the outputs of its neighbours one layer below; the last one has all of it. */
function layered(salt: string): Build {
  const keys = Array.from({ length: layers }, (_, layer) => Array.from({ length: width }, (_, i) => `${layer}/${i}`));
  const action = (key: string, takes: readonly string[]): BuildAction => ({
    key,
    arguments: ["/bin/sh", "-c", `sleep 0.3; (cat in* 2> /dev/null; echo ${key}) | sort -u > o # ${salt}`],
    environment: [{ name: "PATH", value: "/usr/bin:/bin" }],
    workingDirectory: "",
    outputPaths: ["o"],
    inputs: takes.map((maker, i) => ({
      path: `in${i}`,
      isExecutable: false,
      source: { kind: "output", value: { action: maker, path: "o" } },
    })),
    platform: [],
    timeoutMs: 0,
    doNotCache: false,
    skipCacheLookup: false,
    after: [],
  });
  const below = (layer: number, i: number) => [keys[layer - 1]?.[i] ?? "", keys[layer - 1]?.[(i + 1) % width] ?? ""];
  const actions = keys.flatMap((row, layer) => row.map((key, i) => action(key, layer === 0 ? [] : below(layer, i))));
  return { name: "layers", instanceName: "", deadlineMs: 0, actions: [...actions, action("all", keys.at(-1) ?? [])] };
}

describe("a build on a fleet", { skip, timeout: 280_000 }, () => {
  const processes = new Processes();
  const { submitBuild, watchBuild, getBuild, getAction } = Builds.methods;
  let fleet: Fleet;
  before(async () => {
    const database = await postgres.server().freshDatabase();
    fleet = await Fleet.start({ nodes: 3, shards: 32, leaseMs: 2_000, slots: 2 }, { processes, database });
  });
  after(async () => {
    await fleet[Symbol.asyncDispose]();
    await processes.close();
    await postgres.stop();
  });

  test("goes on when two of them are killed, and ends with all its outputs", async () => {
    const build = layered(randomUUID());
    const [first, second, third] = ["n1", "n2", "n3"].map((name) => fleet.member(name)) as [
      ReturnType<Fleet["member"]>,
      ReturnType<Fleet["member"]>,
      ReturnType<Fleet["member"]>,
    ];
    const what = { kind: "build", value: build } as const;
    const { buildId } = await fleet.client(first).unary(submitBuild, { requestId: "layers", priority: 0, what });
    const workers = new Set<string>();
    const toKill = [
      { after: 4, member: first },
      { after: 20, member: second },
    ];
    let last: BuildStatus | undefined;
    for await (const { build: now, changed } of fleet.client(third).serverStream(watchBuild, { buildId })) {
      last = now;
      for (const { worker } of changed) if (worker !== "") workers.add(worker);
      const done = now?.counts.find(({ state }) => state === State.ACTION_STATE_SUCCEEDED)?.actions ?? 0;
      const [next] = toKill;
      if (next && done >= next.after) {
        toKill.shift();
        await fleet.kill(next.member);
        fleet.up(next.member);
      }
    }
    equal(last?.phase, Phase.BUILD_PHASE_SUCCEEDED, last?.reason ?? "");
    equal(toKill.length, 0, "both were killed while it ran");
    ok(workers.size >= 2, [...workers].join());
    await fleet.ready(first);
    const again = await fleet.client(first).unary(submitBuild, { requestId: "layers", priority: 0, what });
    equal(again.buildId, buildId, "the node that took it knows it still");
    const status = await fleet.client(first).unary(getBuild, { buildId, withActions: true });
    equal(status.counts[0]?.actions, build.actions.length);
    const { outputs } = await fleet.client(third).unary(getAction, { buildId, key: "all" });
    const [hash = "", size = ""] = (outputs[0]?.made?.value ?? "").split("/");
    const { responses } = await fleet.client(third).unary(ContentAddressableStorage.methods.batchReadBlobs, {
      instanceName: "",
      digests: [{ hash, sizeBytes: Number(size) }],
      acceptableCompressors: [],
      digestFunction: 0,
    });
    const lines = Buffer.from(responses[0]?.data ?? "")
      .toString()
      .trimEnd()
      .split("\n");
    equal(lines.length, build.actions.length);
  });
});
