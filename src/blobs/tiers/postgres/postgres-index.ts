/** The action index in PostgreSQL (B7): a row for each entry, and versions from one sequence, so that none repeats. */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { Fault, isFault } from "#base/fault.ts";
import { confirmation, isDoubt, notConfirmed, prepareSession } from "#base/postgres-session.ts";
import type { ActionIndex, Entry, EntryKey, NewEntry, Written } from "#blobs/action-index.ts";
import { checkEntry } from "#blobs/memory/memory-index.ts";

export type PostgresIndexOptions = {
  readonly url: string;
  readonly schema?: string;
  readonly connectionsMax?: number;
  readonly timeoutMs?: number;
};

export type PostgresIndex = ActionIndex & { [Symbol.asyncDispose](): Promise<void> };

type Row = {
  readonly space: string;
  readonly name: string;
  readonly digest: string;
  readonly version: string;
  readonly principal: string;
  readonly at_ms: string;
  readonly notes: Entry["notes"] | null;
};

export async function openPostgresIndex(options: PostgresIndexOptions): Promise<PostgresIndex> {
  const { schema = "millrace" } = options;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) throw new Fault("invalid", "open names", { schema });
  const { ask, end } = sessions(options);
  try {
    await prepare(ask, schema);
  } catch (error) {
    await end();
    throw error;
  }
  return { ...indexOn(ask, `"${schema}".names`, `"${schema}".names_version`), [Symbol.asyncDispose]: end };
}

function sessions({ url, connectionsMax = 8, timeoutMs = 5_000 }: PostgresIndexOptions) {
  const name = `millrace names ${randomBytes(6).toString("hex")}`;
  const live = new Set<number>();
  const doubtful = new WeakSet<pg.ClientBase>();
  // The pool waits for the promise, although its types do not say so.
  const onConnect: (client: pg.ClientBase) => unknown = (client) => {
    live.add(pidOf(client));
    return prepareSession((text, values) => client.query(text, values), name, live);
  };
  const pool = new pg.Pool({
    onConnect,
    connectionString: url,
    application_name: name,
    max: connectionsMax,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    statement_timeout: timeoutMs,
  });
  pool.on("error", () => {}); // the pool replaces an idle connection that broke
  pool.on("remove", (client) => live.delete(pidOf(client)));
  pool.on("connect", (client) => {
    client.on("error", () => {});
    client.on("notice", (notice) => {
      if (isDoubt(notice)) doubtful.add(client);
    });
  });
  const ask: Ask = async (statement, values = []) => {
    const client = await pool.connect().catch((error: unknown) => failed(error, "unavailable"));
    let broken = true;
    try {
      const { rows } = await client.query<Row>({ ...statement, values: [...values] });
      if (doubtful.has(client)) throw new Error(notConfirmed);
      broken = false;
      return rows;
    } catch (error) {
      return failed(error, "unknown-outcome");
    } finally {
      if (broken) live.delete(pidOf(client));
      client.release(broken);
    }
  };
  return { ask, end: () => pool.end() };
}

/** The pid of the server process; the driver has it, although its types do not say so. */
const pidOf = (client: pg.ClientBase): number => (client as pg.ClientBase & { processID?: number }).processID ?? 0;

/** A statement with a name is prepared once per connection. */
type Statement = { readonly name?: string; readonly text: string };
type Ask = (statement: Statement, values?: readonly unknown[]) => Promise<readonly Row[]>;

/** Nodes may start at the same time: the lock lets one create the table first. */
async function prepare(ask: Ask, schema: string): Promise<void> {
  const text = `do $$ begin
    perform pg_advisory_xact_lock(hashtext('millrace names'));
    create schema if not exists "${schema}";
    create sequence if not exists "${schema}".names_version;
    create table if not exists "${schema}".names (
      tenant text collate "C" not null, space text collate "C" not null, name text collate "C" not null,
      digest text not null, version bigint not null, principal text not null, at_ms bigint not null, notes jsonb,
      primary key (tenant, space, name));
  end $$`;
  await ask({ text });
}

const columns = "space, name, digest, version, principal, at_ms, notes";
const at = "tenant = $1 and space = $2 and name = $3";

function indexOn(ask: Ask, table: string, sequence: string): ActionIndex {
  const set = `digest = $4, principal = $5, at_ms = $6, notes = $7, version = nextval('${sequence}')`;
  const insert =
    `insert into ${table} (tenant, space, name, digest, principal, at_ms, notes, version) ` +
    `values ($1, $2, $3, $4, $5, $6, $7, nextval('${sequence}')) on conflict (tenant, space, name) do`;
  const selectOne = { name: "names-get", text: `select ${columns} from ${table} where ${at}` };
  /** For callers that act on the answer: waits until the standby has it too. */
  const selectConfirmed = {
    name: "names-get-confirmed",
    text: `select ${columns}, ${confirmation} from ${table} where ${at}`,
  };
  const putAnyhow = { name: "names-put", text: `${insert} update set ${set} returning version` };
  const putFirst = { name: "names-put-first", text: `${insert} nothing returning version` };
  const putNext = {
    name: "names-put-next",
    text: `update ${table} set ${set} where ${at} and version = $8 returning version`,
  };
  const get = async ({ tenant, space, name }: EntryKey): Promise<Entry | undefined> => {
    const [row] = await ask(selectOne, [tenant, space, name]);
    return row && entryOf(row);
  };
  const written = async (rows: readonly Row[], key: EntryKey): Promise<Written> => {
    const [row] = rows;
    if (row) return { kind: "written", version: Number(row.version) };
    const [current] = await ask(selectConfirmed, [key.tenant, key.space, key.name]);
    return { kind: "conflict", current: current && entryOf(current) };
  };
  const fields = (key: EntryKey, entry: NewEntry): readonly unknown[] => {
    const { tenant, space, name } = key;
    const notes = entry.notes ? JSON.stringify(entry.notes) : null;
    return [tenant, space, name, entry.digest, entry.principal, entry.atMs, notes];
  };
  return {
    get,
    async put(key, entry, ifVersion) {
      checkEntry(key, entry.notes);
      const values = fields(key, entry);
      if (ifVersion === undefined) return await written(await ask(putAnyhow, values), key);
      if (ifVersion === 0) return await written(await ask(putFirst, values), key);
      return await written(await ask(putNext, [...values, ifVersion]), key);
    },
    async remove({ tenant, space, name }, ifVersion) {
      const condition = ifVersion === undefined ? "" : " and version = $4";
      const values = [tenant, space, name, ...(ifVersion === undefined ? [] : [ifVersion])];
      const text = `delete from ${table} where ${at}${condition} returning version`;
      if ((await ask({ text }, values)).length > 0) return true;
      await ask({ text: `select ${confirmation}` });
      return false;
    },
    async list({ tenant, spacePrefix = "", after, limit }) {
      const [space, name] = after === undefined ? ["", ""] : (JSON.parse(after) as [string, string]);
      const text =
        `select ${columns} from ${table} where tenant = $1 and starts_with(space, $2) and (space, name) > ($3, $4) ` +
        `order by space, name limit $5`;
      const rows = await ask({ text }, [tenant, spacePrefix, space, name, limit + 1]);
      const page = rows.slice(0, limit);
      const last = page.at(-1);
      const entries = page.map((row) => ({ tenant, space: row.space, name: row.name, ...entryOf(row) }));
      return { entries, ...(last && rows.length > limit && { next: JSON.stringify([last.space, last.name]) }) };
    },
  };
}

const entryOf = ({ digest, version, principal, at_ms, notes }: Row): Entry => ({
  digest,
  version: Number(version),
  principal,
  atMs: Number(at_ms),
  ...(notes && { notes }),
});

/**
 * If the server answered, the statement was not done. If the connection broke after the request was sent, the outcome
 * is unknown.
 */
function failed(error: unknown, otherwise: "unavailable" | "unknown-outcome"): never {
  if (isFault(error)) throw error;
  const { code, message } = error as { code?: string; message: string };
  // These classes (08, 40003, 57P) end the session and leave the statement's outcome unknown.
  const isAnswer = code !== undefined && /^(?!08|40003|57P)[0-9A-Z]{5}$/.test(code);
  const outcome = isAnswer ? "unavailable" : otherwise;
  throw new Fault(code === "53100" ? "exhausted" : outcome, "use the action index", { code, why: message }, error);
}
