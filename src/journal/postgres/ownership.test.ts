import { deepEqual, equal, ok } from "node:assert/strict";
import { after, describe, test } from "node:test";
import pg from "pg";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { batch, only, own } from "#journal/testing/support.ts";
import type { Journal, NodeRow } from "#journal/journal.ts";
import { postgresJournal } from "./postgres.ts";

const postgres = await sharedPostgres();
if (postgres.skip) console.error(`ownership in PostgreSQL is NOT tested: ${postgres.skip}`);
after(() => postgres.stop());

let schemas = 0;

/** A journal, and another session that hangs with rows locked. */
async function withSleeper(play: (journal: Journal, sleeper: Sleeper) => Promise<void>): Promise<void> {
  const schema = `owned_${(schemas += 1)}`;
  const journal = postgresJournal({ url: postgres.server().url(), schema });
  const client = new pg.Client({ connectionString: postgres.server().url() });
  try {
    await journal.open({ shards: 2, clusterId: "test" });
    await client.connect();
    await play(journal, new Sleeper(client, schema));
  } finally {
    await client.end();
    await journal.close();
  }
}

class Sleeper {
  readonly #client: pg.Client;
  readonly #schema: string;

  constructor(client: pg.Client, schema: string) {
    this.#client = client;
    this.#schema = schema;
  }

  /** Runs the statement and leaves the transaction open. */
  async hold(statement: (schema: string) => string): Promise<void> {
    await this.#client.query("begin");
    await this.#client.query(statement(this.#schema));
  }

  /** Resolves when another session waits for the locked rows. */
  async isWaitedFor(): Promise<void> {
    const text = "select 1 from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid))";
    while ((await this.#client.query(text)).rows.length === 0);
  }

  async wake(): Promise<void> {
    await this.#client.query("commit");
  }
}

const row: NodeRow = { node: "ada", address: "ada.test:1", features: 1, state: "up", facts: {} };

describe("ownership in PostgreSQL", { skip: postgres.skip }, () => {
  test("an acquire that waited for a release sees what was released", () =>
    withSleeper(async (journal, sleeper) => {
      const epoch = await own(journal, 0, "ada");
      await sleeper.hold((schema) => `update ${schema}.shards set epoch = 7, owner = null, lease_until_ms = 0`);
      const acquired = journal.acquire(0, "grace", { leaseMs: 10_000, features: 1 });
      await sleeper.isWaitedFor();
      await sleeper.wake();
      const answer = await acquired;
      ok(answer.kind === "acquired" && answer.epoch === 8, `after ${epoch}: ${JSON.stringify(answer)}`);
      deepEqual(await journal.confirm([{ shard: 0, epoch: 8 }]), [true]);
      equal(only(await journal.append([batch(0, 8, 1)])), "appended");
    }));

  test("an acquire that waited for another acquire does not take the shard too", () =>
    withSleeper(async (journal, sleeper) => {
      await sleeper.hold((schema) => `update ${schema}.shards set epoch = 3, owner = 'ada', lease_until_ms = 1e15`);
      const acquired = journal.acquire(0, "grace", { leaseMs: 10_000, features: 1 });
      await sleeper.isWaitedFor();
      await sleeper.wake();
      const answer = await acquired;
      ok(answer.kind === "held" && answer.by === "ada" && answer.epoch === 3, JSON.stringify(answer));
      deepEqual(await journal.confirm([{ shard: 0, epoch: 3 }]), [true]);
    }));

  test("a release that waited for a new owner changes nothing", () =>
    withSleeper(async (journal, sleeper) => {
      const epoch = await own(journal, 0, "ada");
      await sleeper.hold((schema) => `update ${schema}.shards set epoch = epoch + 1, owner = 'grace'`);
      const released = journal.release(0, epoch, { node: "ada", reservedMs: 10_000 });
      await sleeper.isWaitedFor();
      await sleeper.wake();
      await released;
      deepEqual(
        (await journal.ownerships()).map(({ owner }) => owner),
        ["grace", "grace"],
      );
      deepEqual(await journal.confirm([{ shard: 0, epoch: epoch + 1 }]), [true]);
    }));

  test("the cluster's row is not locked while there is nothing to raise: hand-overs read it", () =>
    withSleeper(async (journal, sleeper) => {
      await journal.announce(row, 10_000);
      equal(await journal.raiseFeatureLevel(), 1);
      await sleeper.hold((schema) => `select from ${schema}.cluster for share`);
      equal(await journal.raiseFeatureLevel(), 1);
      await journal.announce({ ...row, features: 2 }, 10_000);
      const raised = journal.raiseFeatureLevel();
      await sleeper.isWaitedFor();
      await sleeper.wake();
      equal(await raised, 2);
    }));

  test("a release does not wait for the cluster's row", () =>
    withSleeper(async (journal, sleeper) => {
      const epoch = await own(journal, 0, "ada");
      await sleeper.hold((schema) => `select from ${schema}.cluster for update`);
      await journal.release(0, epoch, { node: "grace", reservedMs: 10_000 });
      await sleeper.wake();
      equal((await journal.acquire(0, "barbara", { leaseMs: 1_000, features: 1 })).kind, "refused");
      equal(await own(journal, 0, "grace"), epoch + 2);
    }));
});
