// What is acknowledged if commits should wait for a synchronous standby that does not confirm them.
import { deepEqual, equal, fail, match, ok } from "node:assert/strict";
import { after, describe, test } from "node:test";
import pg from "pg";
import { isFault } from "#base/fault.ts";
import { isDoubt, waitForStandby } from "#base/postgres-session.ts";
import { startPostgresPair } from "#testing/postgres-pair.ts";
import { batch, faults, fill, only, own, readAll, seqs } from "#journal/testing/support.ts";
import type { Journal } from "#journal/journal.ts";
import { postgresJournal } from "./postgres.ts";

const postgres = await startPostgresPair();
if (postgres.skip) console.error(`a synchronous standby is NOT tested: ${postgres.skip}`);
after(() => postgres.stop());

/** The node gives up on a call after 2.5 s instead of 7 s. */
const impatient = { statementTimeoutMs: 500 };

type Scene = { readonly journal: Journal; readonly url: string; readonly epoch: number };

/** A journal with one record in shard 0, on both servers. */
async function scene(
  play: (scene: Scene) => Promise<void>,
  options: { readonly statementTimeoutMs?: number } = {},
): Promise<void> {
  const url = await postgres.pair().freshDatabase();
  const journal = postgresJournal({ url, ...options });
  try {
    await journal.open({ shards: 2, clusterId: "standby" });
    const epoch = await own(journal, 0);
    await fill(journal, { shard: 0, epoch, count: 1 });
    await play({ journal, url, epoch });
  } finally {
    postgres.pair().thaw();
    await journal.close();
  }
}

/** Whether the promise is settled, without waiting for it. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol("pending");
  promise.catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  return (await Promise.race([promise.catch(() => undefined), Promise.resolve(pending)])) !== pending;
}

/** The call waits for the standby, and answers once it confirms. */
async function waitsForStandby<T>(call: () => Promise<T>): Promise<T> {
  const pair = postgres.pair();
  const known = await pair.waiters();
  const answer = call();
  const tooSoon = answer.then((value) => fail(`answered without the standby: ${JSON.stringify(value)}`));
  await Promise.race([pair.waiting(known), tooSoon]);
  tooSoon.catch(() => undefined);
  equal(await isSettled(answer), false, "answered without the standby");
  pair.thaw();
  return await answer;
}

test("a warning counts as doubt unless it is known to be harmless", () => {
  equal(isDoubt({ code: "01000", routine: "SyncRepWaitForLSN" }), true);
  equal(isDoubt({ code: "57P01", routine: "SyncRepWaitForLSN" }), true);
  equal(isDoubt({ code: "01000" }), true);
  equal(isDoubt({ code: "01000", routine: "GetNewTransactionId" }), false);
  equal(isDoubt({ code: "00000" }), false);
});

describe("journal in PostgreSQL, with a synchronous standby", { skip: postgres.skip }, () => {
  const pair = postgres.skip ? (undefined as never) : postgres.pair();

  for (const how of ["pg_cancel_backend", "pg_terminate_backend"] as const) {
    test(`K7 an append whose wait for the standby ended by ${how} is not acknowledged until the standby has it`, () =>
      scene(async ({ journal, epoch }) => {
        await pair.freeze();
        const append = journal.append([batch(0, epoch, 2)]);
        append.catch(() => undefined);
        await pair.interrupt(how);
        await faults(append, "unknown-outcome");
        equal((await waitsForStandby(() => journal.tail(0))).seq, 2);
        await fill(journal, { shard: 0, epoch, from: 3, count: 1 });
      }));

    test(`K8 an epoch whose commit ended by ${how} is not taken`, () =>
      scene(async ({ journal }) => {
        await pair.freeze();
        const acquired = journal.acquire(1, "ada", { leaseMs: 10_000, features: 1 });
        acquired.catch(() => undefined);
        await pair.interrupt(how);
        await faults(acquired, "unknown-outcome");
        const again = await waitsForStandby(() => own(journal, 1));
        equal(again, 2);
      }));
  }

  test("K7 an append that timed out on the node is not acknowledged by reading it back", () =>
    scene(async ({ journal, epoch }) => {
      await pair.freeze();
      const confirms = () =>
        Array.from({ length: 4 }, () => faults(journal.confirm([{ shard: 0, epoch }]), "unavailable"));
      await Promise.all([faults(journal.append([batch(0, epoch, 2)]), "unknown-outcome"), ...confirms()]);
      await Promise.all(confirms());
      // Sessions without a client are ended by later sessions.
      const { length } = await pair.waiters();
      ok(length <= 5, `${length} sessions wait`);
      equal((await waitsForStandby(() => journal.tail(0))).seq, 2);
    }, impatient));

  test("K8 epochs are confirmed, leases renewed and snapshots saved only when the standby answers", () =>
    scene(async ({ journal, epoch }) => {
      await pair.freeze();
      deepEqual(await waitsForStandby(() => journal.confirm([{ shard: 0, epoch }])), [true]);
      await pair.freeze();
      const renewal = journal.renew("ada", [{ shard: 0, epoch }], 10_000);
      renewal.catch(() => undefined);
      await pair.interrupt("pg_cancel_backend");
      await faults(renewal, "unknown-outcome");
      const snapshot = journal.saveSnapshot(0, { epoch, seq: 1 }, one());
      snapshot.catch(() => undefined);
      await pair.interrupt("pg_cancel_backend");
      await faults(snapshot, "unknown-outcome");
      equal(await waitsForStandby(async () => (await journal.cluster()).featureLevel), 0);
    }));

  test("settings of the database do not weaken what the journal waits for", () =>
    scene(async ({ url, epoch }) => {
      await inDatabase(url, "synchronous_commit = local");
      await inDatabase(url, "client_min_messages = error"); // a cancelled wait is reported as a warning
      const journal = postgresJournal({ url });
      await fill(journal, { shard: 0, epoch, from: 2, count: 1 });
      await pair.freeze();
      const append = journal.append([batch(0, epoch, 3)]);
      append.catch(() => undefined);
      await pair.interrupt("pg_cancel_backend");
      await faults(append, "unknown-outcome");
      await journal.close();
    }));

  test("a session waits for the standby's disk, whatever the default is", async () => {
    const client = new pg.Client(pair.primary.url());
    await client.connect();
    const waited: string[] = [];
    for (const weak of ["off", "local", "remote_write", "on", "remote_apply"]) {
      await client.query(`set synchronous_commit = ${weak}`);
      await waitForStandby((text) => client.query(text));
      const { rows } = await client.query<{ synchronous_commit: string }>("show synchronous_commit");
      waited.push(rows[0]?.synchronous_commit ?? "");
    }
    deepEqual(waited, ["on", "on", "on", "on", "remote_apply"]);
    await client.end();
  });

  test("K8 a standby, which may be behind, is not asked which epoch is current", () =>
    scene(async ({ url, epoch }) => {
      const journal = postgresJournal({ url: pair.standby.url(databaseOf(url)) });
      await faults(journal.confirm([{ shard: 0, epoch }]), "unavailable");
      await journal.close();
    }));

  test("the server's promises are described, and again when they change", () =>
    scene(async ({ journal }) => {
      const told = async (): Promise<string> => (await journal.describe()).notes.join("\n");
      match(await told(), /commits wait for a synchronous standby \(second\)/);
      await pair.waitFor("");
      match(await told(), /WARNING: 1 standby\(s\), none of them synchronous/);
      await pair.waitFor("second");
      match(await told(), /commits wait for a synchronous standby/);
    }));

  // The last one: it ends the primary.
  test("K7 nothing that was acknowledged is lost when the primary dies and the standby takes over", () =>
    scene(async ({ journal, url, epoch }) => {
      const acknowledged = [1];
      for (let seq = 2; seq <= 9; seq += 1) {
        const isMeddled = seq % 2 === 0;
        if (isMeddled) await pair.freeze();
        const append = isAppended(journal, epoch, seq);
        if (isMeddled) await pair.interrupt(seq % 4 === 0 ? "pg_terminate_backend" : "pg_cancel_backend");
        pair.thaw();
        ok(await append);
        acknowledged.push(seq);
      }
      await pair.standby.stop("immediate");
      const last = isAppended(journal, epoch, 10);
      await pair.interrupt("pg_cancel_backend");
      await Promise.race([pair.waiting(), last]); // for the answer of `tail`
      equal(await isSettled(last), false, "acknowledged without the standby");
      const promoted = await pair.failOver(url);
      equal(await last, false);
      const next = postgresJournal({ url: promoted });
      deepEqual(seqs(await readAll(next, 0)), acknowledged);
      await fill(next, { shard: 0, epoch: await own(next, 0), from: 10, count: 1 });
      await next.close();
    }));
});

const databaseOf = (url: string): string => new URL(url).pathname.slice(1);

const inDatabase = (url: string, setting: string): Promise<unknown> =>
  postgres.pair().admin.query(`alter database ${databaseOf(url)} set ${setting}`);

async function* one(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(10);
}

/** As a shard's host does: an unknown outcome is settled at the tail. False when the server is gone. */
async function isAppended(journal: Journal, epoch: number, seq: number): Promise<boolean> {
  let isDoubtful = false;
  for (let tries = 0; tries < 100; tries += 1) {
    try {
      if (isDoubtful && (await journal.tail(0)).seq === seq) return true;
      if (only(await journal.append([batch(0, epoch, seq)])) === "appended") return true;
    } catch (error) {
      if (!isFault(error)) throw error;
      isDoubtful ||= error.code === "unknown-outcome";
      if (/ECONNREFUSED/.test(error.message)) return false;
    }
  }
  return false;
}
