/** Records in PostgreSQL. A change locks the row of its tenant and kind until the commit. */
import { must } from "#base/assert.ts";
import { cursorOf, rangeOf, type RecordRange } from "#records/cursor.ts";
import {
  changesMax,
  checkId,
  checkKind,
  recordPageBytesMax,
  type RecordId,
  type RecordStore,
  type StoredRecord,
} from "#records/records.ts";
import {
  checkAllGiven,
  checkGiven,
  decideChanges,
  decideCreate,
  decideCreateAll,
  decideRemove,
  decideReplace,
  freshKind,
  storedOf,
  type KindRow,
  type RecordRow,
  type Write,
} from "#records/rules.ts";
import { storeNow } from "./append.ts";
import type { Run, Statement } from "./lane.ts";
import type { Ports } from "./ownership.ts";

export const recordTables = (schema: string): readonly string[] => [
  `create table ${schema}.record_kinds (kind text collate "C" not null, tenant text collate "C" not null,
    version int8 not null, count int8 not null, bytes int8 not null, forgotten int8 not null,
    primary key (kind, tenant)) with (fillfactor = 50)`,
  `create table ${schema}.records (kind text collate "C" not null, tenant text collate "C" not null,
    name text collate "C" not null, version int8 not null, document text, created_at_ms float8 not null,
    changed_at_ms float8 not null, primary key (kind, tenant, name))`,
  `create index records_version on ${schema}.records (kind, tenant, version)`,
  `create index records_newest on ${schema}.records (kind, tenant, created_at_ms, name) where document is not null`,
  `create index records_newest_of_all on ${schema}.records (kind, created_at_ms, tenant, name)
    where document is not null`,
];

const columns = `tenant, name, version, document, created_at_ms as "createdAtMs", changed_at_ms as "changedAtMs"`;

type At = Parameters<typeof decideCreate>[0];

export function recordsIn({ lane, schema, offsetMs }: Ports): RecordStore {
  const change = <T>(
    doing: string,
    id: RecordId,
    decide: (at: At) => { readonly answer: T; readonly write?: Write },
  ): Promise<T> =>
    lane.transaction(doing, async (run) => {
      const { answer, write } = decide(await lockedAt(run, schema, id, offsetMs()));
      if (write) await written(run, schema, id, write);
      return answer;
    });
  return {
    async create(id, document, limits) {
      checkGiven("create a record", id, document);
      return await change("create a record", id, (at) => decideCreate(at, { document, limits }));
    },
    async createAll(of, given, limits) {
      checkAllGiven("create records", of, given);
      const [first] = given;
      if (!first) return { created: true, records: [] };
      return await lane.transaction("create records", async (run) => {
        const { kind, row: firstRow, nowMs } = await lockedAt(run, schema, { ...of, name: first.name }, offsetMs());
        const rows = [firstRow];
        for (const { name } of given.slice(1)) rows.push((await run<RecordRow>(rowSql(schema, { ...of, name })))[0]);
        const { answer, writes } = decideCreateAll({ of, kind, rows, nowMs }, given, limits);
        for (const write of writes) await written(run, schema, { ...of, name: write.row.name }, write);
        return answer;
      });
    },
    async read(id) {
      checkId("read a record", id);
      const [row] = await lane.read<RecordRow>("read a record", rowSql(schema, id));
      return storedOf(id, row);
    },
    async replace(id, version, document, limits) {
      checkGiven("replace a record", id, document);
      return await change("replace a record", id, (at) => decideReplace(at, version, { document, limits }));
    },
    async remove(id, version) {
      checkId("remove a record", id);
      return await change("remove a record", id, (at) => decideRemove(at, version));
    },
    async list(query) {
      const range = rangeOf(query);
      const found = await lane.read<StoredRecord>("list records", listSql(schema, range));
      const records = found.slice(0, range.limit);
      const last = records.at(-1);
      // A page that was cut by its bytes may have been the last: then an empty one follows.
      const bytes = records.reduce((sum, { document }) => sum + Buffer.byteLength(document), 0);
      const isMore = found.length > range.limit || bytes >= recordPageBytesMax;
      return { records, cursor: isMore && last ? cursorOf(last) : undefined };
    },
    async changes(of, since) {
      checkKind("read changes of records", of.kind);
      const rows = await lane.read<RecordRow>("read changes of records", {
        name: "record-changes",
        text: bounded(
          `select * from ${schema}.records where kind = $1::text and tenant = $2::text and version > $3::int8
            order by version limit $4::int4`,
          "version",
        ),
        values: [of.kind, of.tenant, since, changesMax],
      });
      // Read last: removals that are forgotten by then may be missing above.
      const [kind] = await lane.read<KindRow>("read changes of records", {
        name: "record-kind",
        text: `select version, count, bytes, forgotten from ${schema}.record_kinds where kind = $1 and tenant = $2`,
        values: [of.kind, of.tenant],
      });
      return decideChanges(of.tenant, { kind: kind ?? freshKind, since }, () => rows);
    },
    async newest(kind) {
      return await lane.read<{ tenant: string; version: number }>("look for changes of records", {
        name: "record-newest",
        text: `select tenant, version from ${schema}.record_kinds where kind = $1::text`,
        values: [kind],
      });
    },
  };
}

async function lockedAt(run: Run, schema: string, id: RecordId, offsetMs: number): Promise<At> {
  const [locked] = await run<KindRow & { nowMs: number }>({
    name: "record-lock",
    text: `insert into ${schema}.record_kinds as k values ($1::text, $2::text, 0, 0, 0, 0)
      on conflict (kind, tenant) do update set version = k.version
      returning version, count, bytes, forgotten, ${storeNow("$3")} as "nowMs"`,
    values: [id.kind, id.tenant, offsetMs],
  });
  const [row] = await run<RecordRow>(rowSql(schema, id));
  const { nowMs, ...kind } = must(locked, "the row of a kind of records");
  return { id, kind, row, nowMs };
}

async function written(run: Run, schema: string, { kind, tenant, name }: RecordId, write: Write): Promise<void> {
  const { version, count, bytes, forgotten } = write.kind;
  await run({
    name: "record-kind-put",
    text: `update ${schema}.record_kinds set version = $3::int8, count = $4::int8, bytes = $5::int8,
      forgotten = $6::int8 where kind = $1::text and tenant = $2::text`,
    values: [kind, tenant, version, count, bytes, forgotten],
  });
  const { row } = write;
  await run({
    name: "record-put",
    text: `insert into ${schema}.records (kind, tenant, name, version, document, created_at_ms, changed_at_ms)
      values ($1::text, $2::text, $3::text, $4::int8, $5::text, $6::float8, $7::float8)
      on conflict (kind, tenant, name) do update set version = excluded.version, document = excluded.document,
        created_at_ms = excluded.created_at_ms, changed_at_ms = excluded.changed_at_ms`,
    values: [kind, tenant, name, row.version, row.document, row.createdAtMs, row.changedAtMs],
  });
  if (row.document === null)
    await run({
      name: "record-forget",
      text: `delete from ${schema}.records where kind = $1::text and tenant = $2::text and version <= $3::int8
        and document is null`,
      values: [kind, tenant, forgotten],
    });
}

const rowSql = (schema: string, { kind, tenant, name }: RecordId): Statement => ({
  name: "record-read",
  text: `select ${columns} from ${schema}.records where kind = $1::text and tenant = $2::text and name = $3::text`,
  values: [kind, tenant, name],
});

/** Pages are limited by bytes as well: the size of a stored value is known without reading it. */
const bounded = (rows: string, order: string): string => `
  select ${columns} from (
    select *, coalesce(sum(octet_length(document)) over (order by ${order}
      rows between unbounded preceding and 1 preceding), 0) as before_bytes from (${rows}) as few
  ) as sized where before_bytes < ${recordPageBytesMax} order by ${order}`;

function listSql(schema: string, { tenant, kind, from, to, order, limit, after }: RecordRange): Statement {
  const isNewest = order === "newest";
  const values: unknown[] = [kind, from, to, limit + 1];
  const value = (given: unknown, type: string): string => `$${values.push(given)}::${type}`;
  const where = [
    `kind = $1::text and name >= $2::text and name < $3::text and document is not null`,
    ...(tenant === undefined ? [] : [`tenant = ${value(tenant, "text")}`]),
    ...(after ? [afterSql(after, isNewest, value)] : []),
  ].join(" and ");
  const by = isNewest ? "created_at_ms desc, tenant desc, name desc" : "tenant, name";
  return { text: bounded(`select * from ${schema}.records where ${where} order by ${by} limit $4::int4`, by), values };
}

function afterSql(
  { tenant, name, createdAtMs }: NonNullable<RecordRange["after"]>,
  isNewest: boolean,
  value: (given: unknown, type: string) => string,
): string {
  if (!isNewest) return `(tenant, name) > (${value(tenant, "text")}, ${value(name, "text")})`;
  const place = `${value(createdAtMs, "float8")}, ${value(tenant, "text")}, ${value(name, "text")}`;
  return `(created_at_ms, tenant, name) < (${place})`;
}
