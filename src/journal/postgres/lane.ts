/**
 * A pool of connections to one PostgreSQL for one purpose, and what its failures mean: "unavailable" if it was
 * certainly not done, "unknown-outcome" if the connection was lost after the statement was sent, or if the server
 * stopped waiting for its synchronous standby (ADR 0036).
 */
import pg from "pg";
import { AssertionFailed } from "#base/assert.ts";
import { Fault, isFault } from "#base/fault.ts";
import { isDoubt, notConfirmed, prepareSession } from "#base/postgres-session.ts";
import { resultTypes } from "./values.ts";

export type LaneOptions = {
  readonly url: string;
  /** Shown in the server's list of sessions; unique to the lane. */
  readonly name: string;
  readonly connectionsMax: number;
  readonly connectTimeoutMs: number;
  /** The server's limit for a statement, and for a lock that it waits for. */
  readonly statementTimeoutMs: number;
  /** Runs on every new connection before anything else. */
  readonly prepare?: (client: pg.ClientBase) => Promise<void>;
};

export type Statement = { readonly name?: string; readonly text: string; readonly values?: readonly unknown[] };
export type Row = Readonly<Record<string, unknown>>;
export type Run = <R extends object = Row>(statement: Statement) => Promise<R[]>;

const beginnings = {
  read: undefined,
  write: undefined,
  transaction: "begin",
  "lazy transaction": "begin; set local synchronous_commit = off",
} as const;

export class Lane {
  readonly #pool: pg.Pool;
  /** Sessions for which it is not certain that the standby has what they committed. */
  readonly #doubtful = new WeakSet<pg.ClientBase>();
  /** Server processes of connections that are in use or ready for use. */
  readonly #live = new Set<number>();
  #closed = false;

  constructor(options: LaneOptions) {
    const { url, name, connectionsMax, connectTimeoutMs, statementTimeoutMs, prepare } = options;
    // The pool awaits it, though its types do not say so.
    const onConnect: (client: pg.ClientBase) => unknown = async (client) => {
      this.#live.add(pidOf(client));
      await prepareSession((text, values) => client.query(text, values), name, this.#live);
      await prepare?.(client);
    };
    this.#pool = new pg.Pool({
      connectionString: url,
      max: connectionsMax,
      application_name: name,
      connectionTimeoutMillis: connectTimeoutMs,
      statement_timeout: statementTimeoutMs,
      lock_timeout: statementTimeoutMs,
      // A session that hangs in a transaction holds locks that others wait for: end it soon.
      idle_in_transaction_session_timeout: Math.max(1_000, statementTimeoutMs / 2),
      // The server gives up before this; this is for a server that cannot be reached any more.
      query_timeout: statementTimeoutMs + 2_000,
      keepAlive: true,
      types: resultTypes,
      onConnect,
    });
    // The next call replaces a connection that breaks while idle; without a handler the process would exit.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => {
      client.on("error", () => undefined);
      client.on("notice", (notice) => {
        if (isDoubt(notice)) this.#doubtful.add(client);
      });
    });
    this.#pool.on("remove", (client) => this.#live.delete(pidOf(client)));
  }

  /** Faults are "unavailable", also for statements with a `confirmation`: a read leaves nothing in doubt. */
  read<R extends object = Row>(doing: string, statement: Statement): Promise<R[]> {
    return this.#use(doing, async (run) => await run<R>(statement), "read");
  }

  /** One statement that commits by itself. */
  write<R extends object = Row>(doing: string, statement: Statement): Promise<R[]> {
    return this.#use(doing, async (run) => await run<R>(statement), "write");
  }

  transaction<T>(doing: string, steps: (run: Run) => Promise<T>): Promise<T> {
    return this.#use(doing, steps, "transaction");
  }

  /** The commit does not wait for the disk: the next commit makes it durable too. */
  lazyTransaction<T>(doing: string, steps: (run: Run) => Promise<T>): Promise<T> {
    return this.#use(doing, steps, "lazy transaction");
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#pool.end();
  }

  async #use<T>(doing: string, steps: (run: Run) => Promise<T>, kind: keyof typeof beginnings): Promise<T> {
    if (this.#closed) throw new Fault("unavailable", doing, { why: "the journal is closed" });
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw new Fault("unavailable", doing, { why: reasonOf(error) }, error);
    });
    let broken: boolean | undefined;
    let committing = kind === "write";
    const commits = kind !== "read";
    const begin = beginnings[kind];
    this.#doubtful.delete(client);
    const run: Run = async <R extends object>({ name, text, values }: Statement): Promise<R[]> => {
      const query = { text, values: values?.slice() ?? [], ...(name === undefined ? {} : { name }) };
      return (await client.query<R & pg.QueryResultRow>(query)).rows;
    };
    try {
      if (begin) await run({ text: begin });
      const result = await steps(run);
      committing = commits;
      if (begin) await run({ text: "commit" });
      if (this.#doubtful.has(client)) throw new Error(notConfirmed);
      return result;
    } catch (error) {
      if (error instanceof AssertionFailed) {
        broken = true; // a bug of ours: the server ends the transaction with the connection
        throw error;
      }
      const isLost = isConnectionLost(error);
      const needsRollback = begin !== undefined && !isLost;
      broken = isLost || (needsRollback && !(await rolledBack(client)));
      throw faultOf(doing, error, isLost && committing);
    } finally {
      if (broken) this.#live.delete(pidOf(client));
      client.release(broken);
    }
  }
}

/** The server's process for a connection; the driver has it, though its types do not say so. */
const pidOf = (client: pg.ClientBase): number => (client as pg.ClientBase & { processID?: number }).processID ?? 0;

const rolledBack = (client: pg.ClientBase): Promise<boolean> =>
  client.query("rollback").then(
    () => true,
    () => false,
  );

/** An error that the server reported ended only the statement. */
const isConnectionLost = (error: unknown): boolean => {
  if (isFault(error)) return false;
  if (!(error instanceof pg.DatabaseError)) return true;
  // Shut down, crashed, or moved: FATAL errors also arrive as messages, and end the session.
  return error.severity === "FATAL" || error.severity === "PANIC" || /^(08|57P|40003|25006)/.test(error.code ?? "");
};

function faultOf(doing: string, error: unknown, isOutcomeUnknown: boolean): Fault {
  if (isFault(error)) return error;
  const sqlState = error instanceof pg.DatabaseError ? error.code : undefined;
  const facts = { why: reasonOf(error), sqlState };
  if (isOutcomeUnknown && sqlState !== "25006") return new Fault("unknown-outcome", doing, facts, error);
  // Data or index damage that the server detected.
  if (sqlState === "XX001" || sqlState === "XX002") return new Fault("corrupt", doing, facts, error);
  // 22: an invalid value, 23: a constraint. 42: our SQL, or a missing permission or table.
  if (sqlState !== undefined && /^2[23]/.test(sqlState)) return new Fault("invalid", doing, facts, error);
  return new Fault(sqlState?.startsWith("42") ? "internal" : "unavailable", doing, facts, error);
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  const { message, code } = error as { message?: string; code?: string };
  if (message === "Query read timeout")
    return "the server did not answer in time; if commits wait for a synchronous standby, see whether one is connected";
  return message || code || String(error);
}
