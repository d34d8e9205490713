/** A real Bazel builds and tests through any of three real nodes, and all of them work for it. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { bazelMissing } from "#e2e/bazel/bazel.ts";
import {
  large,
  largeIsWhole,
  links,
  linksLead,
  manyWereRead,
  ofMany,
  testsEndEachItsWay,
  wheelsTurned,
} from "#e2e/bazel/cases.ts";
import { Site } from "#e2e/bazel/site.ts";
import { addTrials } from "#e2e/bazel/trials.ts";
import { Processes } from "#e2e/chaos/processes.ts";
import { Fleet, type Member } from "./fleet.ts";
import { actionsOf, operationsAt, spreadOf } from "./operations.ts";
import { actionsIn, makeSacks, sacksTarget, type Sacks } from "./sacks.ts";

const sacks: Sacks = { layers: 3, width: 16, seconds: 0.2 };
const targets = [sacksTarget, "//wheels/...", "//flour/...", ...links, ofMany, ...large, "//trials:pass_test"];
const postgres = await sharedPostgres();
const skip = bazelMissing() ?? postgres.skip;

describe("Bazel through any of three nodes", { skip, timeout: 280_000 }, () => {
  const processes = new Processes();
  let fleet: Fleet;
  let through: Member;
  let site: Site;
  let cacheable = 0;

  before(async () => {
    const database = await postgres.server().freshDatabase();
    fleet = await Fleet.start({ nodes: 3, shards: 32, leaseMs: 3_000, slots: 2 }, { processes, database });
    through = fleet.member("n1");
    const [{ folder }, salt] = [fleet, randomUUID()];
    const workspace = addTrials(makeSacks(folder, salt, sacks), folder, salt);
    const flags = () => [`--remote_executor=grpc://${through.edge}`, "--spawn_strategy=remote", "--jobs=12"];
    site = new Site({ folder, salt, workspace, flags });
  });
  after(async () => {
    await site.bazel.stop();
    await fleet[Symbol.asyncDispose]();
    await processes.close();
    await postgres.stop();
  });

  async function isAllThere(): Promise<void> {
    equal(site.made("sacks/all_of_them.txt").trimEnd().split("\n").length, sacks.layers * sacks.width);
    wheelsTurned(site);
    linksLead(site);
    manyWereRead(site);
    await largeIsWhole(site);
  }

  test("its actions are run by all of them: libraries, trees, links, many inputs, large outputs", async () => {
    const { processes: run } = await site.test(targets);
    await isAllThere();
    cacheable = run.get("remote") ?? 0;
    ok(cacheable >= actionsIn(sacks), `${cacheable} actions`);
    deepEqual([...run.keys()].toSorted(), ["internal", "remote"]);
    const operations = await operationsAt(fleet.client(fleet.member("n2")));
    const spread = spreadOf(operations);
    // Each action has one operation, which is listed once.
    equal(new Set(actionsOf(operations)).size, cacheable);
    equal(operations.length, cacheable);
    deepEqual([...spread.keys()].toSorted(), ["n1", "n2", "n3"]);
    for (const [worker, count] of spread) ok(count >= cacheable / 6, `${worker} ran ${count} of ${cacheable}`);
  });

  test("its tests pass, fail, are flaky and time out through another, each as Bazel reports it", async () => {
    through = fleet.member("n2");
    await testsEndEachItsWay(site);
  });

  test("and everything that succeeded is found in the cache through the third", async () => {
    through = fleet.member("n3");
    await site.bazel.clean();
    const { output, processes: run } = await site.test(targets);
    await isAllThere();
    match(output, /^\/\/trials:pass_test +\(cached\) PASSED/m);
    deepEqual([run.get("remote") ?? 0, run.get("remote cache hit")], [0, cacheable]);
  });
});
