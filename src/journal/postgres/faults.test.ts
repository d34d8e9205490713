// What the journal does and reports when the server, or the connection to it, fails.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { after, describe, test } from "node:test";
import pg from "pg";
import { isFault, type FaultCode } from "#base/fault.ts";
import { startPostgres } from "#testing/postgres.ts";
import { until } from "#testing/until.ts";
import { batch, faults, fill, only, own, readAll, seqs } from "#journal/testing/support.ts";
import type { Journal } from "#journal/journal.ts";
import { judgeServer } from "./describe.ts";
import { postgresJournal, type PostgresOptions } from "./postgres.ts";

const postgres = await startPostgres();
if (postgres.skip) console.error(`faults of PostgreSQL are NOT tested: ${postgres.skip}`);
after(() => postgres.stop());

async function opened(options: Partial<PostgresOptions> = {}): Promise<{ journal: Journal; url: string }> {
  const url = await postgres.server().freshDatabase();
  const journal = postgresJournal({ url, ...options });
  await journal.open({ shards: 2, clusterId: "faults" });
  return { journal, url };
}

const codeOf = (promise: Promise<unknown>): Promise<FaultCode | "none"> =>
  promise.then(
    () => "none",
    (error: unknown) => {
      if (isFault(error)) return error.code;
      throw error;
    },
  );

/** A proxy to the server that can go silent: requests arrive, no answer comes back, then the connection is cut. */
class Line implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #dumb = false;
  #sentWhileDumb = 0;

  constructor(port: number) {
    this.#server = createServer((client) => {
      const upstream = connect(port, "127.0.0.1");
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => this.#sockets.delete(socket));
      }
      client.on("data", (data) => {
        if (this.#dumb) this.#sentWhileDumb += data.length;
        upstream.write(data);
      });
      upstream.on("data", (data) => this.#dumb || client.write(data));
      // The server must not learn of a cut at once: that is how sessions outlive their clients.
      upstream.on("end", () => client.end());
    });
  }

  async through(url: string): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const changed = new URL(url);
    changed.port = String((this.#server.address() as AddressInfo).port);
    return changed.href;
  }

  goDumb(): void {
    this.#dumb = true;
  }

  get hasSent(): boolean {
    return this.#sentWhileDumb > 0;
  }

  /** For the client only. */
  cut(): void {
    for (const socket of this.#sockets) if (socket.localPort === this.#port) socket.destroy();
    this.#dumb = false;
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const portOf = (url: string): number => Number(new URL(url).port);

describe("journal in PostgreSQL, under failures", { skip: postgres.skip }, () => {
  test("a missing server is unavailable, and nothing hangs", async () => {
    const journal = postgresJournal({ url: "postgres://nobody@127.0.0.1:9/none", connectTimeoutMs: 500 });
    await faults(journal.open({ shards: 2, clusterId: "x" }), "unavailable");
    await faults(journal.append([batch(0, 1, 1)]), "unavailable");
    await faults(journal.history.cursor(0), "unavailable");
    await journal.close();
    await faults(journal.cluster(), "unavailable");
  });

  test("J2 an append survives a crash of the server, and the journal reconnects by itself", async () => {
    const { journal } = await opened();
    const epoch = await own(journal, 0);
    await fill(journal, { shard: 0, epoch, count: 3 });
    await postgres.server().stop("immediate");
    const code = await codeOf(journal.append([batch(0, epoch, 4)]));
    ok(code === "unavailable" || code === "unknown-outcome", code);
    equal(await codeOf(journal.append([batch(0, epoch, 4)])), "unavailable");
    await postgres.server().start();
    await until("the journal is back", async () => (await codeOf(journal.tail(0))) === "none");
    deepEqual(seqs(await readAll(journal, 0)), [1, 2, 3]);
    await fill(journal, { shard: 0, epoch, from: 4, count: 1 });
    equal(await journal.history.cursor(0), 0);
    await journal.close();
  });

  test("J2 an append whose answer was lost has an unknown outcome, and the tail settles it", async () => {
    const { journal: setup, url } = await opened();
    const epoch = await own(setup, 0);
    await using line = new Line(portOf(url));
    const journal = postgresJournal({ url: await line.through(url) });
    await fill(journal, { shard: 0, epoch, count: 1 });
    line.goDumb();
    const lost = codeOf(journal.append([batch(0, epoch, 2)]));
    await until("the append has arrived", async () => (await setup.tail(0)).seq === 2);
    line.cut();
    equal(await lost, "unknown-outcome");
    equal((await journal.tail(0)).seq, 2);
    await fill(journal, { shard: 0, epoch, from: 3, count: 1 });
    await journal.close();
    await setup.close();
  });

  test("J2 what the tail says after a lost append is final: its session is ended first", async () => {
    const { journal: setup, url } = await opened();
    const epoch = await own(setup, 0);
    await using line = new Line(portOf(url));
    const journal = postgresJournal({ url: await line.through(url) });
    await fill(journal, { shard: 0, epoch, count: 1 });
    const blocker = new pg.Client(url);
    await blocker.connect();
    await blocker.query("begin; select 1 from millrace.shards where shard = 0 for update");
    line.goDumb();
    const lost = codeOf(journal.append([batch(0, epoch, 2)]));
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and application_name like '%append'`;
    await until("the append waits for the lock", async () => (await blocker.query(waiting)).rowCount === 1);
    line.cut();
    equal(await lost, "unknown-outcome");
    equal((await journal.tail(0)).seq, 1);
    equal((await blocker.query(waiting)).rowCount, 0);
    await blocker.query("rollback");
    await blocker.end();
    await fill(journal, { shard: 0, epoch, from: 2, count: 2 });
    deepEqual(seqs(await readAll(journal, 0)), [1, 2, 3]);
    await journal.close();
    await setup.close();
  });

  test("an append that waits for a lock times out and was not done", async () => {
    const { journal, url } = await opened({ statementTimeoutMs: 200 });
    const epoch = await own(journal, 0);
    const blocker = new pg.Client(url);
    await blocker.connect();
    await blocker.query("begin; select 1 from millrace.shards where shard = 0 for update");
    await faults(journal.append([batch(0, epoch, 1)]), "unavailable");
    await blocker.query("rollback");
    await blocker.end();
    equal(only(await journal.append([batch(0, epoch, 1)])), "appended");
    await journal.close();
  });

  test("a session ended by an administrator is replaced", async () => {
    const { journal, url } = await opened();
    const epoch = await own(journal, 0);
    await fill(journal, { shard: 0, epoch, count: 1 });
    const admin = new pg.Client(url);
    await admin.connect();
    const others = "from pg_stat_activity where pid <> pg_backend_pid() and application_name like 'millrace%'";
    await admin.query(`select pg_terminate_backend(pid, 3000) ${others}`);
    await admin.end();
    await until("appends work again", async () => (await codeOf(journal.tail(0))) === "none");
    await fill(journal, { shard: 0, epoch, from: 2, count: 1 });
    await journal.close();
  });

  test("nodes that start together on an empty database agree", async () => {
    const url = await postgres.server().freshDatabase();
    const nodes = Array.from({ length: 4 }, () => postgresJournal({ url }));
    const clusters = await Promise.all(nodes.map((node, i) => node.open({ shards: 4 + i, clusterId: `cluster ${i}` })));
    equal(new Set(clusters.map((cluster) => JSON.stringify(cluster))).size, 1);
    equal((await nodes[0]?.ownerships())?.length, clusters[0]?.shards);
    await Promise.all(nodes.map((node) => node.close()));
  });

  test("tables of a newer version are left alone", async () => {
    const { journal, url } = await opened();
    const admin = new pg.Client(url);
    await admin.connect();
    await admin.query("update millrace.schema_version set version = 99");
    await admin.end();
    await faults(journal.open({ shards: 2, clusterId: "faults" }), "invalid");
    await journal.close();
  });

  test("the server's durability settings are described", async () => {
    const { journal } = await opened();
    const { kind, durable, notes } = await journal.describe();
    deepEqual([kind, durable], ["postgres", true]);
    match(notes.join("\n"), /fsync=on, synchronous_commit=on/);
    await journal.close();
  });
});

test("settings that break a promise are reported as warnings", () => {
  const sound = {
    version: "17",
    fsync: "on",
    commit: "on",
    commitDefault: "on",
    fullPageWrites: "on",
    synchronous: "",
    standbys: 0,
    recovering: false,
  };
  const told = (part: Partial<typeof sound>): string => {
    const { durable, notes } = judgeServer({ ...sound, ...part });
    return `${durable} ${notes.slice(1).join("; ")}`;
  };
  match(told({}), /^true no standby/);
  match(told({ fsync: "off" }), /^false WARNING: fsync is off/);
  match(told({ commit: "off" }), /^false WARNING: synchronous_commit is off/);
  match(told({ standbys: 1 }), /^true WARNING: 1 standby\(s\), none of them synchronous/);
  match(told({ standbys: 1, synchronous: "a", commit: "local" }), /^true WARNING: 1 standby/);
  match(told({ standbys: 1, synchronous: "a" }), /^true commits wait for a synchronous standby \(a\)/);
  match(told({ synchronous: "a" }), /^true commits wait .* WARNING: no standby is connected: nothing is acknowledged/);
  match(
    told({ commitDefault: "off" }),
    /^true .*; the default of synchronous_commit is off; Millrace's own sessions use on/,
  );
  match(told({ recovering: true }), /^false WARNING: this server is a standby/);
});
