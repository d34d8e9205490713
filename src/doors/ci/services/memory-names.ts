/** Names in memory, gone with the process. */
import type { NameId, NameQuery, NameRecord, Names } from "./names.ts";

export function memoryNames(wallMs: () => number): Names {
  const kept = new Map<string, NameRecord & { readonly kind: string }>();
  let version = 0;
  const keyOf = ({ tenant, kind, name }: NameId): string => JSON.stringify([tenant, kind, name]);

  function put(id: NameId, document: string, createdAtMs: number): NameRecord {
    const record = { ...id, version: (version += 1), document, createdAtMs, changedAtMs: wallMs() };
    kept.set(keyOf(id), record);
    return record;
  }

  return {
    create(id, document) {
      const record = kept.get(keyOf(id));
      return Promise.resolve(
        record ? { created: false, record } : { created: true, record: put(id, document, wallMs()) },
      );
    },
    read: (id) => Promise.resolve(kept.get(keyOf(id))),
    replace(id, seen, document) {
      const record = kept.get(keyOf(id));
      return Promise.resolve(record?.version === seen ? put(id, document, record.createdAtMs) : undefined);
    },
    remove(id, seen) {
      const isSeen = kept.get(keyOf(id))?.version === seen;
      return Promise.resolve(isSeen && kept.delete(keyOf(id)));
    },
    list({ tenant, kind, prefix = "", order = "name", limit, cursor = "0" }: NameQuery) {
      const all = [...kept.values()].filter(
        (one) => one.kind === kind && one.name.startsWith(prefix) && (tenant === undefined || one.tenant === tenant),
      );
      const newestFirst = (one: NameRecord, other: NameRecord): number =>
        other.createdAtMs - one.createdAtMs || other.version - one.version;
      all.sort(order === "newest" ? newestFirst : (one, other) => (one.name < other.name ? -1 : 1));
      const from = Number(cursor);
      const more = from + limit < all.length;
      return Promise.resolve({
        records: all.slice(from, from + limit),
        cursor: more ? String(from + limit) : undefined,
      });
    },
  };
}
