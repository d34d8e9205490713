/** Records in SQLite, in the file of the shared entries. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { RecordRange } from "#records/cursor.ts";
import { fitting, type RecordTables } from "#records/engine.ts";
import type { StoredRecord } from "#records/records.ts";
import type { KindRow, RecordRow } from "#records/rules.ts";

export const recordsSchema = `
  create table record_kinds (kind text not null, tenant text not null, version integer not null,
    count integer not null, bytes integer not null, forgotten integer not null,
    primary key (kind, tenant)) without rowid;
  create table records (id integer primary key, kind text not null, tenant text not null, name text not null,
    version integer not null, document text, created_at_ms integer not null, changed_at_ms integer not null,
    unique (kind, tenant, name));
  create index records_version on records (kind, tenant, version);
  create index records_newest on records (kind, tenant, created_at_ms, name) where document is not null;
  create index records_newest_of_all on records (kind, created_at_ms, tenant, name) where document is not null;
`;

const columns = "tenant, name, version, document, created_at_ms as createdAtMs, changed_at_ms as changedAtMs" as const;

export function sqliteRecordTables(db: DatabaseSync): RecordTables {
  const kindRow = db.prepare("select version, count, bytes, forgotten from record_kinds where kind = ? and tenant = ?");
  const putKind = db.prepare(`insert into record_kinds (kind, tenant, version, count, bytes, forgotten)
    values (?, ?, ?, ?, ?, ?) on conflict (kind, tenant) do update set version = excluded.version,
    count = excluded.count, bytes = excluded.bytes, forgotten = excluded.forgotten`);
  const row = db.prepare(`select ${columns} from records where kind = ? and tenant = ? and name = ?`);
  const putRow = db.prepare(`insert into records (kind, tenant, name, version, document, created_at_ms, changed_at_ms)
    values (?, ?, ?, ?, ?, ?, ?) on conflict (kind, tenant, name) do update set version = excluded.version,
    document = excluded.document, created_at_ms = excluded.created_at_ms, changed_at_ms = excluded.changed_at_ms`);
  const forget = db.prepare("delete from records where kind = ? and tenant = ? and version <= ? and document is null");
  const changed = db.prepare(
    `select ${columns} from records where kind = ? and tenant = ? and version > ? order by version`,
  );
  const newest = db.prepare("select tenant, version from record_kinds where kind = ?");
  return {
    kind: ({ kind, tenant }) => kindRow.get(kind, tenant) as KindRow | undefined,
    putKind: ({ kind, tenant }, { version, count, bytes, forgotten }) =>
      void putKind.run(kind, tenant, version, count, bytes, forgotten),
    row: ({ kind, tenant, name }) => row.get(kind, tenant, name) as RecordRow | undefined,
    putRow: ({ kind, tenant, name }, { version, document, createdAtMs, changedAtMs }) =>
      void putRow.run(kind, tenant, name, version, document, createdAtMs, changedAtMs),
    forget: ({ kind, tenant }, version) => void forget.run(kind, tenant, version),
    list(range) {
      const { text, values } = listSql(range);
      return fitting(db.prepare(text).iterate(...values) as Iterable<StoredRecord>, range.limit);
    },
    changed: ({ kind, tenant }, since) => changed.iterate(kind, tenant, since) as Iterable<RecordRow>,
    newest: (kind) => newest.all(kind) as { tenant: string; version: number }[],
  };
}

function listSql({ tenant, kind, from, to, order, after }: RecordRange): {
  readonly text: string;
  readonly values: readonly SQLInputValue[];
} {
  const isNewest = order === "newest";
  const key = isNewest ? "created_at_ms, tenant, name" : "tenant, name";
  const position = after && (isNewest ? [after.createdAtMs, after.tenant, after.name] : [after.tenant, after.name]);
  const places = isNewest ? "?, ?, ?" : "?, ?";
  const text = `select ${columns} from records where kind = ? and name >= ? and name < ? and document is not null
    ${tenant === undefined ? "" : "and tenant = ?"} ${position ? `and (${key}) ${isNewest ? "<" : ">"} (${places})` : ""}
    order by ${isNewest ? "created_at_ms desc, tenant desc, name desc" : "tenant, name"}`;
  return { text, values: [kind, from, to, ...(tenant === undefined ? [] : [tenant]), ...(position ?? [])] };
}
