import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { isFault } from "#base/fault.ts";
import type { Journal } from "#journal/journal.ts";
import { featuresHere } from "#shard/features.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";
import { startNode } from "#app/compose/compose.ts";
import { openJournal } from "#app/compose/journal.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder, type DataFolder } from "./data-folder.ts";
import { rebuildHistories, type RebuildOutcome } from "./rebuild.ts";
import { orderFromCommand } from "#app/job-order.ts";
import { systemClock } from "#door/system-clock.ts";

const log = (): void => {};
const settings = {
  cluster: { shards: 3 },
  node: { stopWithin: "100ms" },
  edge: { listen: [] },
  worker: { slots: 4 },
};

async function withRoot(body: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "millrace-rebuild-"));
  try {
    await body(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

const rebuilt = (config: Config, folder: DataFolder, only?: number): Promise<RebuildOutcome[]> =>
  Array.fromAsync(rebuildHistories(config, folder, { log, only }));

async function pages({ history }: Journal): Promise<unknown[]> {
  const { jobs } = await history.jobs({ limit: 100 });
  return Promise.all(jobs.map(({ shard, job }) => history.job(shard, job)));
}

/** Runs a few jobs and stops; returns what the history then contains. */
async function used(config: Config, folder: DataFolder): Promise<unknown[]> {
  const running = await startNode(config, folder, { log });
  try {
    for (let i = 0; i < 5; i += 1) await running.client.submit(orderFromCommand(["true"], { tenant: "t" }));
    await until("the history has the end of each job", async () => {
      const { jobs } = await running.journal.history.jobs({ limit: 100 });
      return jobs.length === 5 && jobs.every(({ endedAtMs }) => endedAtMs > 0);
    });
    return await pages(running.journal);
  } finally {
    await running.stop();
  }
}

async function story(config: Config, folder: DataFolder): Promise<void> {
  const before = await used(config, folder);
  const other = await openJournal(config, folder, systemClock);
  try {
    for (const shard of [0, 1, 2]) await other.history.trim(shard, Number.POSITIVE_INFINITY, 100);
    equal((await pages(other)).length, 0);
    const taken = await other.acquire(1, "other", { leaseMs: 60_000, features: featuresHere });
    const kinds = (await rebuilt(config, folder)).map(({ kind, shard }) => `${shard} ${kind}`);
    deepEqual(kinds, ["0 rebuilt", "1 owned", "2 rebuilt"]);
    ok(taken.kind === "acquired");
    await other.release(1, taken.epoch);
    equal((await rebuilt(config, folder, 1))[0]?.kind, "rebuilt");
    deepEqual(await pages(other), before);
    deepEqual(
      (await other.ownerships()).map(({ owner }) => owner),
      [undefined, undefined, undefined],
      "the shards are given back",
    );
    await rejects(rebuilt(config, folder, 3), (error) => isFault(error, "not-found"));
  } finally {
    await other.close();
  }
}

describe("the history of a stopped node is rebuilt; a shard with an owner is skipped", async () => {
  const postgres = await sharedPostgres();
  after(() => postgres.stop());

  test("SQLite", { timeout: 120_000 }, () => withRoot((root) => story(Config.parse(settings), dataFolder(root))));
  test("PostgreSQL", { timeout: 120_000, skip: postgres.skip }, async () => {
    const url = await postgres.server().freshDatabase();
    const config = Config.parse({ ...settings, journal: { kind: "postgres", url } });
    await withRoot((root) => story(config, dataFolder(root)));
  });
});

test("a history that cannot be rebuilt is reported with the reason", { timeout: 120_000 }, () =>
  withRoot(async (root) => {
    const nowhere = dataFolder(join(root, "nowhere"));
    await rejects(rebuilt(Config.parse({}), nowhere), (error) => isFault(error, "not-found"));
    ok(!existsSync(nowhere.path), "nothing was made on the way");
    await rejects(rebuilt(Config.parse({ journal: { kind: "memory" } }), nowhere), (e) => isFault(e, "invalid"));

    const running = await startNode(Config.parse(settings), dataFolder(root), { log });
    try {
      await rejects(rebuilt(Config.parse(settings), dataFolder(root)), (error) => {
        equal(isFault(error, "exhausted") && error.facts["why"], "a node is running there: stop it first");
        return true;
      });
    } finally {
      await running.stop();
    }
    const named = Config.parse({ ...settings, cluster: { name: "other" } });
    await rejects(rebuilt(named, dataFolder(root)), (error) => isFault(error, "invalid"));
    equal(must((await rebuilt(Config.parse(settings), dataFolder(root)))[0], "outcome").kind, "rebuilt");
  }),
);
