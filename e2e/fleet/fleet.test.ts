/** A real Bazel builds through one of three real nodes, and all of them work for it. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startPostgres } from "#test/postgres.ts";
import { Bazel, bazelMissing, type Built } from "#e2e/bazel/bazel.ts";
import type { Workspace } from "#e2e/bazel/workspace.ts";
import { Processes } from "#e2e/chaos/processes.ts";
import { Fleet, type Member } from "./fleet.ts";
import { actionsOf, operationsAt, spreadOf } from "./operations.ts";
import { actionsIn, makeSacks, sacksTarget, type Sacks } from "./sacks.ts";

const sacks: Sacks = { layers: 3, width: 16, seconds: 0.2 };
const postgres = await startPostgres({ durable: false });
const skip = bazelMissing() ?? postgres.skip;

describe("Bazel through any of three nodes", { skip, timeout: 280_000 }, () => {
  const processes = new Processes();
  let fleet: Fleet;
  let workspace: Workspace;
  let bazel: Bazel;

  const build = (through: Member): Promise<Built> =>
    bazel.build(
      [sacksTarget, "//flour/..."],
      [`--remote_executor=grpc://${through.edge}`, "--spawn_strategy=remote", "--jobs=12"],
    );

  before(async () => {
    const database = await postgres.server().freshDatabase();
    fleet = await Fleet.start({ nodes: 3, shards: 32, leaseMs: 3_000, slots: 2 }, { processes, database });
    workspace = makeSacks(fleet.folder, randomUUID(), sacks);
    bazel = new Bazel(workspace, join(fleet.folder, "bazel"));
  });
  after(async () => {
    await bazel.stop();
    await fleet[Symbol.asyncDispose]();
    await processes.close();
    await postgres.stop();
  });

  test("its actions are run by all of them", async () => {
    const { processes: run } = await build(fleet.member("n1"));
    const actions = run.get("remote") ?? 0;
    ok(actions >= actionsIn(sacks), `${actions} actions`);
    const made = readFileSync(join(workspace.root, "bazel-bin/sacks/all_of_them.txt"), "utf8");
    equal(made.trimEnd().split("\n").length, sacks.layers * sacks.width);
    const operations = await operationsAt(fleet.client(fleet.member("n2")));
    const spread = spreadOf(operations);
    // Each action has one operation, which is listed once.
    equal(new Set(actionsOf(operations)).size, actions);
    equal(operations.length, actions);
    deepEqual([...spread.keys()].toSorted(), ["n1", "n2", "n3"]);
    for (const [worker, count] of spread) ok(count >= actions / 6, `${worker} ran ${count} of ${actions}`);
  });

  test("and are found in the cache through another", async () => {
    await bazel.clean();
    const { processes: run } = await build(fleet.member("n3"));
    equal(run.get("remote") ?? 0, 0);
    ok((run.get("remote cache hit") ?? 0) >= actionsIn(sacks));
  });
});
