/** A real Bazel with a real node: a first build, then from the cache alone, also after the node was restarted. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { Bazel, bazelMissing, type Built } from "./bazel.ts";
import { makeWorkspace, type Workspace } from "./workspace.ts";
import { clearAway } from "#testing/clear-away.ts";

const missing = bazelMissing();
const targets = ["//..."];

describe("Bazel", { skip: missing ?? false, timeout: 280_000 }, () => {
  const salt = randomUUID();
  let folder: string;
  let workspace: Workspace;
  let bazel: Bazel;
  let node: Running;
  let actions = 0;

  const start = (): Promise<Running> =>
    startNode(
      Config.parse({
        cluster: { shards: 1 },
        edge: { listen: ["127.0.0.1:0"] },
        worker: { enabled: false },
      }),
      dataFolder(join(folder, "node")),
      { log: () => {} },
    );
  const cache = (): string[] => [`--remote_cache=grpc://${node.edgeAddresses[0] ?? ""}`, "--remote_retries=0"];
  const rebuild = async (...more: readonly string[]): Promise<Built> => {
    await bazel.clean();
    return await bazel.build(targets, [...cache(), ...more]);
  };
  const said = (): string => join(workspace.root, "bazel-bin/flour/said.txt");

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-bazel-"));
    workspace = makeWorkspace(folder, salt);
    bazel = new Bazel(workspace, join(folder, "bazel"));
    node = await start();
  });
  after(async () => {
    await bazel.stop();
    await node.stop();
    execFileSync("chmod", ["-R", "u+w", folder]); // Bazel makes its outputs read-only
    clearAway(folder);
  });

  test("builds new code, and nothing of it comes from the cache", async () => {
    const { processes } = await bazel.build(targets, cache());
    equal(processes.get("remote cache hit") ?? 0, 0);
    actions = ranHere(processes);
    ok(actions >= 10, `${actions} actions`);
    match(readFileSync(said(), "utf8"), new RegExp(`^0 ${salt}\n1 ${salt}\n`));
  });

  test("rebuilds from the cache alone, trees and all", async () => {
    const { processes } = await rebuild();
    deepEqual([processes.get("remote cache hit"), ranHere(processes)], [actions, 0]);
    match(readFileSync(said(), "utf8"), new RegExp(salt));
    const sacks = join(workspace.root, "bazel-bin/flour/sacks");
    deepEqual(readdirSync(sacks).toSorted(), ["deep", "empty", "grind"]);
    match(readFileSync(join(sacks, "deep/er/flour"), "utf8"), new RegExp(salt));
    ok((statSync(join(sacks, "grind")).mode & 0o100) !== 0, "what was executable is");
    equal(execFileSync(join(workspace.root, "bazel-bin/wheels/mill"), { encoding: "utf8" }).split("\n").length, 5);
  });

  test("rebuilds without fetching outputs that are not needed", async () => {
    const { processes } = await rebuild("--remote_download_minimal");
    deepEqual([processes.get("remote cache hit"), ranHere(processes)], [actions, 0]);
    equal(existsSync(said()), false, "nobody asked for it");
  });

  test("rebuilds from the cache of a restarted node", async () => {
    await node.stop();
    node = await start();
    const { processes } = await rebuild();
    deepEqual([processes.get("remote cache hit"), ranHere(processes)], [actions, 0]);
  });

  test("another instance name has a separate cache", async () => {
    const { processes } = await rebuild("--remote_instance_name=other/place");
    equal(processes.get("remote cache hit") ?? 0, 0);
    const again = await rebuild("--remote_instance_name=other/place");
    equal(again.processes.get("remote cache hit"), actions);
  });
});

/** All ways in which Bazel runs actions locally; "internal" are links and the like, which never use a cache. */
function ranHere(processes: ReadonlyMap<string, number>): number {
  let count = 0;
  for (const [how, many] of processes) if (how !== "remote cache hit" && how !== "internal") count += many;
  return count;
}
