/** The tables in PostgreSQL. The first node creates or upgrades them, under a lock: nodes may start together. */
import { Fault } from "#base/fault.ts";
import { byKey, storedNames, storedTables, type StoredName } from "#journal/history/columns.ts";
import { jobsViewSql, postgresDialect } from "#journal/history/jobs-view.ts";
import { entriesTable } from "./entries.ts";
import type { Lane } from "./lane.ts";
import { recordTables } from "./records.ts";

export const schemaVersion = 9;

const historyTypes = { id: "int8", number: "float8", text: "text", list: "text" } as const;

const historySchema = (schema: string): string[] => [
  `create table ${schema}.history_cursors (shard int4 primary key, seq int8 not null)`,
  ...storedNames.map((name) => tableSql(schema, name)),
];

function tableSql(schema: string, name: StoredName): string {
  const spec = storedTables[name];
  const columns = spec.columns.map((column) => `"${column.name}" ${historyTypes[column.kind]} not null`);
  return `create table if not exists ${schema}.${name} (${columns.join(", ")}, primary key (${byKey(spec)}))`;
}

/** By version: the statements that upgrade a database from the previous version. */
const migrations = (schema: string): readonly (readonly string[])[] => [
  [
    `create table ${schema}.cluster (one int4 primary key check (one = 1), cluster_id text not null,
      shards int4 not null, feature_level int4 not null)`,
    // Half-empty pages: renewing a lease then finds space beside the old row and touches no index.
    `create table ${schema}.shards (
      shard int4 primary key, epoch int8 not null default 0, owner text, lease_until_ms float8 not null default 0,
      reserved_for text, reserved_until_ms float8 not null default 0,
      base_seq int8 not null default 0, base_epoch int8 not null default 0, base_hash int8 not null default 0,
      snapshot_id int8 not null default 0, snapshot_seq int8 not null default 0, snapshot_epoch int8 not null default 0,
      snapshot_chunks int8 not null default 0, snapshot_hash int8 not null default 0, attempt_id int8 not null default 0
    ) with (fillfactor = 50)`,
    `create table ${schema}.log (shard int4 not null, seq int8 not null, epoch int8 not null, hash int8 not null,
      record bytea not null, primary key (shard, seq))`,
    // Events are encoded densely: trying to compress them would cost more than it saves.
    `alter table ${schema}.log alter column record set storage external`,
    `create table ${schema}.request_keys (shard int4 not null, key bytea not null, job int8 not null,
      payload_hash bytea not null, retained_until_ms float8 not null, primary key (shard, key))`,
    `create index request_keys_age on ${schema}.request_keys (shard, retained_until_ms)`,
    `create table ${schema}.chunks (shard int4 not null, snapshot int8 not null, index int4 not null,
      record bytea not null, primary key (shard, snapshot, index))`,
    `alter table ${schema}.chunks alter column record set storage external`,
    `create table ${schema}.segments (shard int4 not null, from_seq int8 not null, through_seq int8 not null,
      digest text not null, size_bytes int8 not null, primary key (shard, from_seq))`,
    `create table ${schema}.nodes (node text primary key, row text not null, seen_at_ms float8 not null,
      ttl_ms float8 not null)`,
    ...historySchema(schema),
  ],
  // A database created with this version has it from the start.
  [`alter table ${schema}.jobs add column if not exists whole text not null default ''`],
  [
    tableSql(schema, "pages"),
    // Half of a page is digests: compressing it would cost more than writing it.
    `alter table ${schema}.pages alter column cells set storage external`,
  ],
  [
    `drop index if exists ${schema}.jobs_newest`,
    `create index jobs_newest on ${schema}.jobs (submitted_at_ms, shard, job)`,
  ],
  entriesTable(schema),
  recordTables(schema),
  [
    `alter table ${schema}.jobs
      add column if not exists seen_at_ms float8 not null default 0,
      add column if not exists number float8 not null default 0,
      add column if not exists series text not null default '',
      add column if not exists tags text not null default ''`,
    `update ${schema}.jobs set seen_at_ms = ended_at_ms where seen_at_ms = 0`,
    tableSql(schema, "tags"),
  ],
  [tableSql(schema, "submissions"), `alter table ${schema}.submissions alter column request set storage external`],
  [jobsViewSql(postgresDialect, `${schema}.`)],
];

/** Quoted where it is used; limited to plain names so that people can type it, too. */
export function checkSchemaName(schema: string): string {
  if (!/^[a-z_][a-z0-9_]{0,50}$/.test(schema))
    throw new Fault("invalid", "open journal", { why: "schema name", schema });
  return schema;
}

export async function prepareSchema(lane: Lane, schema: string): Promise<void> {
  await lane.transaction("prepare schema", async (run) => {
    await run({
      text: "select pg_advisory_xact_lock(hashtextextended($1, 0)) is null",
      values: [`millrace ${schema}`],
    });
    const [server] = await run<{ encoding: string; version: number }>({
      text: `select current_setting('server_encoding') as encoding,
        current_setting('server_version_num')::int4 as version`,
    });
    if (server && !["UTF8", "SQL_ASCII"].includes(server.encoding))
      throw new Fault("invalid", "open journal", { why: "the database must be UTF8", encoding: server.encoding });
    if (server && server.version < 140_000)
      throw new Fault("invalid", "open journal", { why: "needs PostgreSQL 14 or newer", version: server.version });
    const [table] = await run<{ there: boolean }>({
      text: "select to_regclass($1) is not null as there",
      values: [`${schema}.schema_version`],
    });
    if (!table?.there) {
      await run({ text: `create schema if not exists ${schema}` });
      await run({ text: `create table ${schema}.schema_version (version int4 not null)` });
      await run({ text: `insert into ${schema}.schema_version values (0)` });
    }
    const [found] = await run<{ version: number }>({ text: `select version from ${schema}.schema_version` });
    const version = found?.version ?? 0;
    if (version > schemaVersion)
      throw new Fault("invalid", "open journal", {
        why: "the tables were made by a newer version of this program",
        version,
        understood: schemaVersion,
      });
    for (const statements of migrations(schema).slice(version)) for (const text of statements) await run({ text });
    if (version < schemaVersion)
      await run({ text: `update ${schema}.schema_version set version = $1::int4`, values: [schemaVersion] });
  });
}
