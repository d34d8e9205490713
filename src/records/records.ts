/**
 * Named documents that all nodes share: repositories, services, secrets, schedules, names of artifacts. The journal's
 * database keeps them; no decision of a shard reads them.
 *
 * RC1 Of all that create under one (tenant, kind, name), one succeeds; the others get the record that is there. Several
 *     that are created together are created all, or none.
 * RC2 `replace` and `remove` change only the version that the caller names. Versions of one tenant and kind only grow,
 *     over removals too: no version ever means two documents.
 * RC3 What was acknowledged survives crashes, and every node reads it from then on.
 * RC4 A tenant has at most `countMax` records of a kind, and `bytesMax` in them: more is a Fault "exhausted".
 * RC5 Changes of one tenant and kind are read in the order of their versions, and none is left out except older states
 *     of a record. A reader that was away for too long is told to read everything again.
 */
import { Fault } from "#base/fault.ts";

export type RecordId = {
  readonly tenant: string;
  /** What it is, such as "ci.repository": the door's name first, where it is a door's. */
  readonly kind: string;
  readonly name: string;
};

export type StoredRecord = {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
  /** As it was given: text, mostly JSON. */
  readonly document: string;
  /** On the store's clock, as `changedAtMs`. */
  readonly createdAtMs: number;
  readonly changedAtMs: number;
};

/** Of one tenant and kind. */
export type RecordLimits = { readonly countMax: number; readonly bytesMax: number };

export type Created =
  | { readonly created: true; readonly record: StoredRecord }
  | { readonly created: false; readonly record: StoredRecord };

/** Of one tenant. */
export type RecordKind = Omit<RecordId, "name">;
export type NewRecord = { readonly name: string; readonly document: string };

export type CreatedAll =
  | { readonly created: true; readonly records: readonly StoredRecord[] }
  /** The first one that was there. */
  | { readonly created: false; readonly record: StoredRecord };

export type RecordQuery = {
  /** Left out: of all tenants. */
  readonly tenant?: string | undefined;
  readonly kind: string;
  /** Of the name. */
  readonly prefix?: string | undefined;
  /** By name, or the last created first. */
  readonly order?: "name" | "newest" | undefined;
  readonly limit: number;
  /** The one that the page before returned. */
  readonly cursor?: string | undefined;
};

export type RecordPage = {
  readonly records: readonly StoredRecord[];
  /** Undefined on the last page. A page may be shorter than its limit and not be the last. */
  readonly cursor: string | undefined;
};

export type RecordChange =
  | { readonly name: string; readonly version: number; readonly record: StoredRecord }
  | { readonly name: string; readonly version: number; readonly record: undefined };

export type Changes =
  /** In the order of versions; the next call is to go on after `through`. */
  | { readonly kind: "changes"; readonly changes: readonly RecordChange[]; readonly through: number }
  /** Removals after `since` are no longer known. List all records, then go on after `through`. */
  | { readonly kind: "reset"; readonly through: number };

export type RecordStore = {
  /** Left out, `limits` are `recordLimitsDefault`. */
  create(id: RecordId, document: string, limits?: RecordLimits): Promise<Created>;
  /** All of them, or none where one of the names is taken: durable together, for the price of one. */
  createAll(of: RecordKind, given: readonly NewRecord[], limits?: RecordLimits): Promise<CreatedAll>;
  read(id: RecordId): Promise<StoredRecord | undefined>;
  /** Undefined: there is none, or it has another version by now. */
  replace(id: RecordId, version: number, document: string, limits?: RecordLimits): Promise<StoredRecord | undefined>;
  /** False: there is none, or it has another version by now. */
  remove(id: RecordId, version: number): Promise<boolean>;
  list(query: RecordQuery): Promise<RecordPage>;
  changes(of: { readonly tenant: string; readonly kind: string }, since: number): Promise<Changes>;
  /** The newest version of each tenant that has, or had, records of the kind. */
  newest(kind: string): Promise<readonly { readonly tenant: string; readonly version: number }[]>;
};

export const recordLimitsDefault: RecordLimits = { countMax: 10_000, bytesMax: 64 << 20 };
export const documentBytesMax = 256 * 1024;
export const recordPageMax = 1_000;
/** A page ends with the document that reaches this. */
export const recordPageBytesMax = 4 << 20;
/** How many changes one call returns at most. */
export const changesMax = 500;

const nameCharactersMax = 512;
/** Sorts after every character that a name may have. */
export const lastCharacter = "\u{10FFFF}";

export function checkId(doing: string, { tenant, kind, name }: RecordId): void {
  checkKind(doing, kind);
  checkText(doing, "tenant", tenant);
  checkText(doing, "name", name);
}

export function checkKind(doing: string, kind: string): void {
  if (!/^[a-z][a-z0-9.-]{0,63}$/.test(kind)) throw new Fault("invalid", doing, { kind, why: "no kind of record" });
}

function checkText(doing: string, what: string, text: string): void {
  const why = wrongText(text);
  if (why !== undefined) throw new Fault("invalid", doing, { [what]: text.slice(0, 80), why });
}

function wrongText(text: string): string | undefined {
  if (text === "" || text.length > nameCharactersMax) return `it has 1 to ${nameCharactersMax} characters`;
  if (!text.isWellFormed() || /\p{Cc}/u.test(text) || text.includes(lastCharacter))
    return "control characters and broken ones are not allowed";
  return undefined;
}

export function checkDocument(doing: string, document: string): void {
  const bytes = Buffer.byteLength(document);
  if (bytes > documentBytesMax) throw new Fault("invalid", doing, { bytes, bytesMax: documentBytesMax });
  if (document.includes("\0") || !document.isWellFormed())
    throw new Fault("invalid", doing, { why: "a document is text, without NUL and broken characters" });
}
