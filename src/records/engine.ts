/** Records over a synchronous store (memory, SQLite). Each operation runs inside one transaction. */
import { cursorOf, rangeOf, type RecordRange } from "./cursor.ts";
import {
  changesMax,
  checkId,
  checkKind,
  recordPageBytesMax,
  type Changes,
  type Created,
  type CreatedAll,
  type NewRecord,
  type RecordId,
  type RecordKind,
  type RecordLimits,
  type RecordPage,
  type RecordQuery,
  type RecordStore,
  type StoredRecord,
} from "./records.ts";
import {
  checkGiven,
  decideChanges,
  checkAllGiven,
  decideCreate,
  decideCreateAll,
  decideRemove,
  decideReplace,
  freshKind,
  storedOf,
  type KindRow,
  type RecordRow,
  type Write,
} from "./rules.ts";

export type RecordTables = {
  kind(of: RecordKind): KindRow | undefined;
  putKind(of: RecordKind, row: KindRow): void;
  row(id: RecordId): RecordRow | undefined;
  putRow(id: RecordId, row: RecordRow): void;
  /** Drops rows without a document up to this version. */
  forget(of: RecordKind, version: number): void;
  /** Rows with a document, in order, as many as `fitting` takes. */
  list(range: RecordRange): Fitting<StoredRecord>;
  /** In order of version, with those of removed records; the engine takes as many as are `fitting`. */
  changed(of: RecordKind, since: number): Iterable<RecordRow>;
  newest(kind: string): readonly { readonly tenant: string; readonly version: number }[];
};

export type Fitting<T> = { readonly taken: readonly T[]; readonly isMore: boolean };

export type RecordsEngine = ReturnType<typeof recordsOver>;

/** The first argument of every operation is the time on the store's clock. */
export function recordsOver(tables: RecordTables) {
  const at = (nowMs: number, id: RecordId) => ({
    id,
    kind: tables.kind(id) ?? freshKind,
    row: tables.row(id),
    nowMs,
  });
  const done = <T>(id: RecordId, { answer, write }: { readonly answer: T; readonly write?: Write }): T => {
    if (!write) return answer;
    tables.putKind(id, write.kind);
    tables.putRow(id, write.row);
    if (write.row.document === null) tables.forget(id, write.kind.forgotten);
    return answer;
  };
  return {
    create(nowMs: number, id: RecordId, document: string, limits?: RecordLimits): Created {
      checkGiven("create a record", id, document);
      return done(id, decideCreate(at(nowMs, id), { document, limits }));
    },
    createAll(nowMs: number, of: RecordKind, given: readonly NewRecord[], limits?: RecordLimits): CreatedAll {
      checkAllGiven("create records", of, given);
      const rows = given.map(({ name }) => tables.row({ ...of, name }));
      const decided = decideCreateAll({ of, kind: tables.kind(of) ?? freshKind, rows, nowMs }, given, limits);
      for (const write of decided.writes) done({ ...of, name: write.row.name }, { answer: undefined, write });
      return decided.answer;
    },
    read(_nowMs: number, id: RecordId): StoredRecord | undefined {
      checkId("read a record", id);
      return storedOf(id, tables.row(id));
    },
    replace(
      nowMs: number,
      id: RecordId,
      version: number,
      document: string,
      limits?: RecordLimits,
    ): StoredRecord | undefined {
      checkGiven("replace a record", id, document);
      return done(id, decideReplace(at(nowMs, id), version, { document, limits }));
    },
    remove(nowMs: number, id: RecordId, version: number): boolean {
      checkId("remove a record", id);
      return done(id, decideRemove(at(nowMs, id), version));
    },
    list(_nowMs: number, query: RecordQuery): RecordPage {
      return pageOf(tables.list(rangeOf(query)));
    },
    changes(_nowMs: number, of: RecordKind, since: number): Changes {
      checkKind("read changes of records", of.kind);
      const kind = tables.kind(of) ?? freshKind;
      return decideChanges(of.tenant, { kind, since }, () => fitting(tables.changed(of, since), changesMax).taken);
    },
    newest(_nowMs: number, kind: string): readonly { readonly tenant: string; readonly version: number }[] {
      return tables.newest(kind);
    },
  };
}

export function pageOf({ taken, isMore }: Fitting<StoredRecord>): RecordPage {
  const last = taken.at(-1);
  return { records: taken, cursor: isMore && last ? cursorOf(last) : undefined };
}

/** As many of the first as a page may hold, and one at least. */
export function fitting<T extends { readonly document: string | null }>(rows: Iterable<T>, limit: number): Fitting<T> {
  const taken: T[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (taken.length === limit || bytes >= recordPageBytesMax) return { taken, isMore: true };
    taken.push(row);
    bytes += Buffer.byteLength(row.document ?? "");
  }
  return { taken, isMore: false };
}

/** The port over an engine that runs elsewhere, such as in a thread of its own. */
export function recordsFrom(
  call: (op: keyof RecordsEngine, args: readonly unknown[]) => Promise<unknown>,
): RecordStore {
  const ask =
    <K extends keyof RecordStore>(op: K) =>
    (...args: Parameters<RecordStore[K]>): ReturnType<RecordStore[K]> =>
      call(op, args) as ReturnType<RecordStore[K]>;
  return {
    create: ask("create"),
    createAll: ask("createAll"),
    read: ask("read"),
    replace: ask("replace"),
    remove: ask("remove"),
    list: ask("list"),
    changes: ask("changes"),
    newest: ask("newest"),
  };
}
