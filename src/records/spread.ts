/**
 * Records over several databases: a tenant's lie together, in the database that its name leads to, so that all rules of
 * RC1-RC5 stay a matter of one transaction, and a database that is away takes only its tenants' records with it.
 */
import { createHash } from "node:crypto";
import { must } from "#base/assert.ts";
import { cursorOf, orderOf, rangeOf } from "./cursor.ts";
import type { RecordStore } from "./records.ts";

/** The number of databases never changes for a cluster. */
export function recordsSpread(databases: readonly RecordStore[]): RecordStore {
  const of = ({ tenant }: { readonly tenant: string }): RecordStore =>
    must(databases[placeOf(tenant, databases.length)], "a database of records");
  return {
    create: (id, document, limits) => of(id).create(id, document, limits),
    createAll: (kind, given, limits) => of(kind).createAll(kind, given, limits),
    read: (id) => of(id).read(id),
    replace: (id, version, document, limits) => of(id).replace(id, version, document, limits),
    remove: (id, version) => of(id).remove(id, version),
    /** Of all databases or not at all: a list with a part missing would look whole. */
    async list(query) {
      const { tenant } = query;
      if (tenant !== undefined) return await of({ tenant }).list(query);
      const { order, limit } = rangeOf(query);
      const pages = await Promise.all(databases.map((database) => database.list(query)));
      // A page that was cut short by its bytes says nothing about what follows it.
      const ends = pages.flatMap(({ records, cursor }) => (cursor === undefined ? [] : (records.at(-1) ?? [])));
      const [end] = ends.toSorted(orderOf[order]);
      const merged = pages.flatMap(({ records }) => records).toSorted(orderOf[order]);
      const known = end ? merged.filter((record) => orderOf[order](record, end) <= 0) : merged;
      const records = known.slice(0, limit);
      const last = records.at(-1);
      const isMore = end !== undefined || known.length > limit;
      return { records, cursor: isMore && last ? cursorOf(last) : undefined };
    },
    changes: (from, since) => of(from).changes(from, since),
    async newest(kind) {
      return (await Promise.all(databases.map((database) => database.newest(kind)))).flat();
    },
  };
}

/** It must not change, or records are looked for where they do not lie. */
const placeOf = (tenant: string, count: number): number =>
  createHash("sha256").update(tenant).digest().readUInt32BE(0) % count;
