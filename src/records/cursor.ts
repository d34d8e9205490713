/** Where a page of records ends: the key of its last one, so that a list stays right while records come and go. */
import { Fault } from "#base/fault.ts";
import { checkKind, lastCharacter, recordPageMax, type RecordQuery, type StoredRecord } from "./records.ts";

/** A query as stores answer it: names from `from` on, before `to`, and after the position if there is one. */
export type RecordRange = {
  readonly tenant: string | undefined;
  readonly kind: string;
  readonly from: string;
  readonly to: string;
  readonly order: "name" | "newest";
  readonly limit: number;
  readonly after: Position | undefined;
};

export type Position = Pick<StoredRecord, "tenant" | "name" | "createdAtMs">;

export function rangeOf({ tenant, kind, prefix = "", order = "name", limit, cursor }: RecordQuery): RecordRange {
  checkKind("list records", kind);
  if (!Number.isInteger(limit) || limit < 1 || limit > recordPageMax)
    throw new Fault("invalid", "list records", { limit, limitMax: recordPageMax });
  if (!prefix.isWellFormed() || prefix.includes("\0")) throw new Fault("invalid", "list records", { why: "prefix" });
  const after = cursor === undefined ? undefined : positionOf(cursor);
  return { tenant, kind, from: prefix, to: `${prefix}${lastCharacter}`, order, limit, after };
}

export const cursorOf = ({ tenant, name, createdAtMs }: Position): string =>
  Buffer.from(JSON.stringify([tenant, name, createdAtMs])).toString("base64url");

function positionOf(cursor: string): Position {
  try {
    const given: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (!Array.isArray(given)) throw new TypeError("no list");
    const [tenant, name, createdAtMs] = given as readonly unknown[];
    if (typeof tenant === "string" && typeof name === "string" && typeof createdAtMs === "number")
      return { tenant, name, createdAtMs };
    throw new TypeError("no position");
  } catch (cause) {
    throw new Fault("invalid", "list records", { why: "this is no cursor of this list" }, cause);
  }
}

/** As UTF-8 sorts, and the databases with it. */
const byText = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

const byName = (a: Position, b: Position): number => byText(a.tenant, b.tenant) || byText(a.name, b.name);

export const orderOf = {
  name: byName,
  newest: (a: Position, b: Position): number => b.createdAtMs - a.createdAtMs || byName(b, a),
} as const;
