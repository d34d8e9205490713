// A primary and a synchronous standby, for tests of what is acknowledged while the standby is unavailable.
import pg from "pg";
import { startPostgres, type PostgresServer, type StartedPostgres } from "./postgres.ts";
import { until } from "./until.ts";

const standbyName = "second";

export type StartedPair = {
  /** False, or why there are no servers: the `skip` of every test that needs them. */
  readonly skip: false | string;
  /** The servers; throws if `skip` is set. */
  pair(): PostgresPair;
  stop(): Promise<void>;
};

export async function startPostgresPair(): Promise<StartedPair> {
  const postgres = await startPostgres();
  if (postgres.skip)
    return { skip: postgres.skip, pair: () => postgres.server() as never, stop: () => postgres.stop() };
  const pair = await PostgresPair.create(postgres).catch(async (error: unknown) => {
    await postgres.stop();
    throw error;
  });
  return { skip: false, pair: () => pair, stop: () => pair.remove() };
}

export class PostgresPair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** On the primary. What it commits does not wait for the standby. */
  readonly admin: pg.Client;
  #frozen: number | undefined;

  private constructor(primary: PostgresServer, standby: PostgresServer) {
    this.primary = primary;
    this.standby = standby;
    this.admin = new pg.Client(primary.url());
    this.admin.on("error", () => undefined); // the primary is killed on purpose
  }

  static async create(postgres: StartedPostgres): Promise<PostgresPair> {
    const primary = postgres.server();
    const pair = new PostgresPair(primary, await primary.addStandby(standbyName));
    await pair.admin.connect();
    await pair.admin.query("set synchronous_commit = local");
    await pair.waitFor(standbyName);
    return pair;
  }

  /** Sets which standbys the primary's commits wait for; resolves when that is in force. */
  async waitFor(names: string): Promise<void> {
    await this.admin.query(`alter system set synchronous_standby_names = '${names}'`);
    await this.admin.query("select pg_reload_conf()");
    const state = names === "" ? "async" : "sync";
    await until(`the standby is ${state}`, () =>
      this.#holds("select 1 from pg_stat_replication where sync_state = $1 and state = 'streaming'", [state]),
    );
  }

  /** An empty database on both servers. */
  async freshDatabase(): Promise<string> {
    return await this.primary.freshDatabase();
  }

  /** The standby stops confirming commits, though its connection stays: commits wait until `thaw`. */
  async freeze(): Promise<void> {
    const client = new pg.Client(this.standby.url());
    await client.connect();
    let pid: number | undefined;
    await until("the standby receives", async () => {
      const { rows } = await client.query<{ pid: number }>("select pid from pg_stat_wal_receiver");
      return (pid = rows[0]?.pid) !== undefined;
    });
    await client.end();
    process.kill((this.#frozen = pid ?? 0), "SIGSTOP");
  }

  thaw(): void {
    if (this.#frozen !== undefined) process.kill(this.#frozen, "SIGCONT");
    this.#frozen = undefined;
  }

  /** The sessions whose commit waits for the standby. */
  async waiters(): Promise<readonly number[]> {
    const text = "select pid from pg_stat_activity where wait_event = 'SyncRep'";
    return (await this.admin.query<{ pid: number }>(text)).rows.map(({ pid }) => pid);
  }

  /** Resolves when a commit waits for the standby, in a session that is not one of `known`; returns that session. */
  async waiting(known: readonly number[] = []): Promise<number> {
    let found: number | undefined;
    await until("a commit waits for the standby", async () => {
      found = (await this.waiters()).find((pid) => !known.includes(pid));
      return found !== undefined;
    });
    return found ?? 0;
  }

  /** Ends the one pending wait as an administrator may: the commit stays, and the standby does not have it. */
  async interrupt(how: "pg_cancel_backend" | "pg_terminate_backend"): Promise<void> {
    const pid = await this.waiting();
    await this.admin.query(`select ${how}($1::int4)`, [pid]);
    await until("it waits no more", async () =>
      this.#holds(
        "select 1 where not exists (select from pg_stat_activity where pid = $1 and wait_event = 'SyncRep')",
        [pid],
      ),
    );
  }

  /** Kills the primary for good; the standby serves from now on. Returns the same database there. */
  async failOver(url: string): Promise<string> {
    await this.primary.stop("kill");
    if (!this.standby.isRunning) await this.standby.start();
    const { pathname } = new URL(url);
    const client = new pg.Client(this.standby.url());
    await client.connect();
    await client.query("select pg_promote(true, 20)");
    await client.end();
    return this.standby.url(pathname.slice(1));
  }

  async remove(): Promise<void> {
    this.thaw();
    await this.admin.end().catch(() => undefined);
    await this.standby.remove();
    await this.primary.remove();
  }

  async #holds(text: string, values: readonly unknown[]): Promise<boolean> {
    return (await this.admin.query(text, [...values])).rowCount === 1;
  }
}
