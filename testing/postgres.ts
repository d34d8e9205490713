// A real PostgreSQL for tests, from npm. Typical use:
//
//   const postgres = await startPostgres();
//   test("…", { skip: postgres.skip }, async () => {
//     const url = await postgres.server().freshDatabase();
//     …
//   });
//   after(() => postgres.stop());
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { freePort } from "./free-port.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { type Guard, guard } from "./postgres-guard.ts";
import { giveTo, serverUser, temporaryFolder, type User } from "./postgres-user.ts";

export type PostgresOptions = {
  /** Default true: commits are fsynced, as in production. False makes setup-heavy tests faster. */
  readonly durable?: boolean;
  /** More settings, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
};

export type StartedPostgres = {
  /** False, or why there is no server: pass it on as the `skip` of every test that needs one. */
  readonly skip: false | string;
  /** The server; throws if `skip` is set. */
  server(): PostgresServer;
  /** Stops the server, if there is one, and removes its files. */
  stop(): Promise<void>;
};

export async function startPostgres(options: PostgresOptions = {}): Promise<StartedPostgres> {
  try {
    const server = await PostgresServer.create(options);
    return { skip: false, server: () => server, stop: () => server.remove() };
  } catch (error) {
    const skip = `needs postgres: ${(error as Error).message}`;
    const server = (): never => {
      throw new Error(skip, { cause: error });
    };
    return { skip, server, stop: () => Promise.resolve() };
  }
}

/** Creates an empty database on the server of `url` and returns its connection string. */
export async function createDatabase(url: string, name: string): Promise<string> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(`create database ${name}`);
  } finally {
    await client.end();
  }
  const made = new URL(url);
  made.pathname = `/${name}`;
  return made.href;
}

type Setup = {
  readonly program: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly user: User | undefined;
  readonly folder: string;
  readonly port: number;
  readonly password: string;
};

export class PostgresServer {
  readonly #setup: Setup;
  readonly #guard: Guard;
  #process: ChildProcess | undefined;
  #logTail: string[] = [];
  #databases = 0;

  private constructor(setup: Setup) {
    this.#setup = setup;
    this.#guard = guard(setup.folder);
  }

  static async create({ durable = true, settings = {} }: PostgresOptions): Promise<PostgresServer> {
    const user = serverUser();
    const { initdb, postgres } = postgresBinaries(user);
    const folder = temporaryFolder("millrace-postgres-", user);
    const password = randomBytes(12).toString("hex");
    const port = await freePort();
    const all = { ...baseSettings, ...(durable ? {} : notDurable), ...settings };
    const server = new PostgresServer({ program: postgres, settings: all, user, folder, port, password });
    try {
      initialize(initdb, folder, password, user);
      await server.start();
      return server;
    } catch (error) {
      await server.remove();
      throw error;
    }
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  /** Connection string of a database; without a name, of one that always exists. */
  url(database: string = "postgres"): string {
    const { port, password } = this.#setup;
    return `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  }

  /** Creates an empty database and returns its connection string, so that suites can share a server. */
  async freshDatabase(): Promise<string> {
    return await createDatabase(this.url(), `test_${process.pid}_${(this.#databases += 1)}`);
  }

  /** Resolves when the server accepts connections, on the same port and data as before. */
  async start(): Promise<void> {
    if (this.#process) throw new Error("start postgres: it is running already");
    const { program, settings, folder, port, user } = this.#setup;
    const all = { ...settings, port: String(port) };
    const args = Object.entries(all).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
    const child = spawn(program, ["-D", join(folder, "data"), ...args], {
      ...user,
      stdio: ["ignore", "ignore", "pipe"],
      env: environment,
    });
    this.#process = child;
    child.once("exit", () => {
      if (this.#process === child) this.#process = undefined;
      this.#guard.serverIs(undefined);
    });
    this.#guard.serverIs(child.pid);
    await this.#untilReady(child);
    child.unref(); // a test that forgets to stop its server must still be able to end
    (child.stderr as unknown as { unref(): void }).unref();
  }

  /**
   * "fast" finishes as an administrator would; "immediate" is a crash: the next start recovers from the log. "kill"
   * is kill -9; the server's other processes notice that and end.
   */
  async stop(how: keyof typeof stopSignals = "fast"): Promise<void> {
    const child = this.#process;
    if (!child) return;
    child.ref();
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill(stopSignals[how]);
    await exited;
  }

  /**
   * A hot standby that streams from this server, under this name in `synchronous_standby_names`. The server is
   * restarted: its files are copied while it is down, because the npm package has no pg_basebackup.
   */
  async addStandby(name: string): Promise<PostgresServer> {
    const { folder: source, port, password, user } = this.#setup;
    await this.stop("fast");
    const folder = temporaryFolder("millrace-postgres-", user);
    const data = join(folder, "data");
    cpSync(join(source, "data"), data, { recursive: true });
    chmodSync(data, 0o700);
    writeFileSync(join(data, "standby.signal"), "");
    if (user) giveTo(user, folder);
    await this.start();
    const from = `host=127.0.0.1 port=${port} user=postgres password=${password} application_name=${name}`;
    const settings = { ...this.#setup.settings, primary_conninfo: from, wal_retrieve_retry_interval: "100ms" };
    const standby = new PostgresServer({ ...this.#setup, folder, port: await freePort(), settings });
    try {
      await standby.start();
      return standby;
    } catch (error) {
      await standby.remove();
      throw error;
    }
  }

  async restart(how: "fast" | "immediate" = "fast"): Promise<void> {
    await this.stop(how);
    await this.start();
  }

  /** Stops the server and removes its files. */
  async remove(): Promise<void> {
    await this.stop("immediate");
    rmSync(this.#setup.folder, { recursive: true, force: true });
    this.#guard.dismiss();
  }

  /** The last lines that the server logged, for a failure's message. */
  log(): string {
    return this.#logTail.join("\n");
  }

  async #untilReady(child: ChildProcess): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    child.once("error", reject);
    // Not "exit": what it said last may still be in the pipe then.
    child.once("close", (code) => reject(new Error(`postgres ended with code ${code}: ${this.log()}`)));
    if (!child.stderr) throw new Error("start postgres: it has no stderr");
    createInterface(child.stderr).on("line", (line) => {
      this.#logTail = [...this.#logTail.slice(-19), line];
      if (/database system is ready to accept (read-only )?connections/.test(line)) resolve();
    });
    await promise;
  }
}

const baseSettings: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  shared_buffers: "32MB",
  max_connections: "100",
  log_min_messages: "warning", // still shows the line that says "ready": in a server's log LOG ranks higher
  timezone: "UTC",
};

const stopSignals = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const;

const notDurable = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

// The caller's PG* variables (PGDATA, PGPORT, ...) must not reach the server.
const environment = Object.fromEntries(
  Object.entries({ ...process.env, LC_ALL: "C" }).filter(([name]) => !name.startsWith("PG")),
);

function initialize(initdb: string, folder: string, password: string, user: User | undefined): void {
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password, { mode: 0o644 }); // the folder itself is closed to others
  const args = ["-D", join(folder, "data"), "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"];
  const done = spawnSync(initdb, [...args, "--auth=password", `--pwfile=${passwordFile}`], {
    ...user,
    cwd: folder,
    env: environment,
    encoding: "utf8",
  });
  if (done.error) throw new Error(`${initdb} could not be started: ${done.error.message}`);
  if (done.status !== 0) throw new Error(`initdb ended with code ${done.status}: ${done.stderr.trim()}`);
}
