/** What a change of a record makes of its row and its kind's row. Pure: every store asks these functions. */
import { Fault } from "#base/fault.ts";
import {
  checkDocument,
  checkId,
  recordLimitsDefault,
  type Changes,
  type Created,
  type CreatedAll,
  type NewRecord,
  type RecordChange,
  type RecordId,
  type RecordKind,
  type RecordLimits,
  type StoredRecord,
} from "./records.ts";

/** Of one tenant and kind. A change of a record locks it, so versions are given in the order of commits. */
export type KindRow = {
  /** The newest version. */
  readonly version: number;
  readonly count: number;
  readonly bytes: number;
  /** Removals up to here may be forgotten. */
  readonly forgotten: number;
};

/** `document` is null when the record was removed: the row stays for a while, so that others learn of it. */
export type RecordRow = Omit<StoredRecord, "document" | "tenant"> & { readonly document: string | null };

export const freshKind: KindRow = { version: 0, count: 0, bytes: 0, forgotten: 0 };

/** Removals are known until this many changes later. */
const removalsKept = 1_000;

/** What is to be written: both rows, and removals up to `kind.forgotten` are dropped where it grew. */
export type Write = { readonly kind: KindRow; readonly row: RecordRow };

type At = {
  readonly id: RecordId;
  readonly kind: KindRow;
  readonly row: RecordRow | undefined;
  readonly nowMs: number;
};

type Give = { readonly document: string; readonly limits?: RecordLimits | undefined };

export function decideCreate(at: At, { document, limits }: Give): { readonly answer: Created; readonly write?: Write } {
  const { id, kind, row, nowMs } = at;
  const found = storedOf(id, row);
  if (found) return { answer: { created: false, record: found } };
  const version = kind.version + 1;
  const made = { name: id.name, version, document, createdAtMs: Math.floor(nowMs), changedAtMs: Math.floor(nowMs) };
  const grown = { ...kind, version, count: kind.count + 1, bytes: kind.bytes + sizeOf(made) };
  checkLimits("create a record", id, grown, limits);
  return {
    answer: { created: true, record: { tenant: id.tenant, ...made } },
    write: { kind: grown, row: made },
  };
}

/** The rows that are there, and what the kind's row was before. */
type AtAll = {
  readonly of: RecordKind;
  readonly kind: KindRow;
  readonly rows: readonly (RecordRow | undefined)[];
  readonly nowMs: number;
};

/** Writes in the order of what is given; the last one has the kind's row as it is in the end. */
export function decideCreateAll(
  { of, kind, rows, nowMs }: AtAll,
  given: readonly NewRecord[],
  limits: RecordLimits | undefined,
): { readonly answer: CreatedAll; readonly writes: readonly Write[] } {
  const writes: Write[] = [];
  const records: StoredRecord[] = [];
  for (const [at, { name, document }] of given.entries()) {
    const next = { id: { ...of, name }, kind: writes.at(-1)?.kind ?? kind, row: rows[at], nowMs };
    const { answer, write } = decideCreate(next, { document, limits });
    if (!write) return { answer: { created: false, record: answer.record }, writes: [] };
    writes.push(write);
    records.push(answer.record);
  }
  return { answer: { created: true, records }, writes };
}

export function decideReplace(
  { id, kind, row, nowMs }: At,
  version: number,
  { document, limits }: Give,
): { readonly answer: StoredRecord | undefined; readonly write?: Write } {
  if (row?.version !== version || row.document === null) return { answer: undefined };
  const next = { ...row, version: kind.version + 1, document, changedAtMs: Math.floor(nowMs) };
  const bytes = kind.bytes - sizeOf(row) + sizeOf(next);
  const changed = { ...kind, version: next.version, bytes };
  if (bytes > kind.bytes) checkLimits("replace a record", id, changed, limits);
  return { answer: { tenant: id.tenant, ...next }, write: { kind: changed, row: next } };
}

export function decideRemove(
  { kind, row, nowMs }: At,
  version: number,
): { readonly answer: boolean; readonly write?: Write } {
  if (row?.version !== version || row.document === null) return { answer: false };
  const next = kind.version + 1;
  const changed = {
    version: next,
    count: kind.count - 1,
    bytes: kind.bytes - sizeOf(row),
    forgotten: Math.max(kind.forgotten, next - removalsKept),
  };
  const removed = { ...row, version: next, document: null, changedAtMs: Math.floor(nowMs) };
  return { answer: true, write: { kind: changed, row: removed } };
}

/** Where to read changes from; `rows` are read after `since`, in order of version. */
export function decideChanges(
  tenant: string,
  { kind, since }: { readonly kind: KindRow; readonly since: number },
  rows: () => readonly RecordRow[],
): Changes {
  // A database that was restored from a copy has older versions than its reader.
  if (since < kind.forgotten || since > kind.version) return { kind: "reset", through: kind.version };
  const changes = rows().map((row) => changeOf(tenant, row));
  return { kind: "changes", changes, through: changes.at(-1)?.version ?? since };
}

const changeOf = (tenant: string, row: RecordRow): RecordChange => ({
  name: row.name,
  version: row.version,
  record: storedOf({ tenant }, row),
});

export function storedOf(
  { tenant }: { readonly tenant: string },
  row: RecordRow | undefined,
): StoredRecord | undefined {
  if (!row) return undefined;
  const { document } = row;
  return document === null ? undefined : { tenant, ...row, document };
}

const sizeOf = ({ name, document }: Pick<RecordRow, "name" | "document">): number =>
  Buffer.byteLength(name) + Buffer.byteLength(document ?? "");

function checkLimits(
  doing: string,
  { tenant, kind }: RecordId,
  { count, bytes }: KindRow,
  { countMax, bytesMax }: RecordLimits = recordLimitsDefault,
): void {
  if (count > countMax)
    throw new Fault("exhausted", doing, { tenant, kind, countMax, why: "the tenant has as many as it may have" });
  if (bytes > bytesMax)
    throw new Fault("exhausted", doing, { tenant, kind, bytesMax, why: "the tenant's documents take what they may" });
}

export function checkGiven(doing: string, id: RecordId, document: string): void {
  checkId(doing, id);
  checkDocument(doing, document);
}

export function checkAllGiven(doing: string, of: RecordKind, given: readonly NewRecord[]): void {
  for (const { name, document } of given) checkGiven(doing, { ...of, name }, document);
  if (new Set(given.map(({ name }) => name)).size < given.length)
    throw new Fault("invalid", doing, { kind: of.kind, why: "two have the same name" });
}
