/** Shared entries in a database and a thread of their own: a request with a key must not hold up appends. */
import type { DatabaseSync } from "node:sqlite";
import { checkValue, type Added, type EntryName, type NewEntry } from "#base/entries.ts";

export const entriesSchema = `
  create table entries (id integer primary key, space text not null, key text not null, owner text not null,
    value text not null, until_ms real not null, unique (space, key));
  create index entries_end on entries (until_ms);
  create index entries_owner on entries (space, owner, id);
`;

export type EntriesOps = ReturnType<typeof sqliteEntries>;

/** How many ended entries one `add` clears away at most. */
const sweepMax = 100;

/** The first argument of every operation is the time on the store's clock. */
export function sqliteEntries(db: DatabaseSync) {
  const sweep = db.prepare("delete from entries where id in (select id from entries where until_ms <= ? limit ?)");
  const find = db.prepare("select id, value, until_ms as untilMs from entries where space = ? and key = ?");
  const drop = db.prepare("delete from entries where space = ? and key = ?");
  const insert = db.prepare("insert into entries (space, key, owner, value, until_ms) values (?, ?, ?, ?, ?)");
  const trim = db.prepare(`delete from entries where id in
    (select id from entries where space = ? and owner = ? order by id desc limit -1 offset ?)`);
  const update = db.prepare("update entries set value = ?, until_ms = ? where space = ? and key = ?");
  const live = (nowMs: number, { space, key }: EntryName): { value: string; untilMs: number } | undefined => {
    const found = find.get(space, key) as { value: string; untilMs: number } | undefined;
    return found && found.untilMs > nowMs ? found : undefined;
  };
  return {
    add(nowMs: number, { space, key, owner, value, forMs, ownerMax }: NewEntry): Added {
      checkValue("add an entry", value);
      const found = live(nowMs, { space, key });
      if (found) return { added: false, value: found.value };
      sweep.run(nowMs, sweepMax);
      drop.run(space, key);
      insert.run(space, key, owner, value, nowMs + forMs);
      trim.run(space, owner, ownerMax);
      return { added: true };
    },
    read(nowMs: number, name: EntryName): { readonly value: string; readonly remainingMs: number } | undefined {
      const found = live(nowMs, name);
      return found && { value: found.value, remainingMs: found.untilMs - nowMs };
    },
    replace(
      nowMs: number,
      name: EntryName,
      from: string,
      { value, forMs }: { readonly value: string; readonly forMs: number },
    ): boolean {
      checkValue("replace an entry", value);
      if (live(nowMs, name)?.value !== from) return false;
      return update.run(value, nowMs + forMs, name.space, name.key).changes > 0;
    },
    remove(nowMs: number, name: EntryName, value: string): boolean {
      if (live(nowMs, name)?.value !== value) return false;
      return drop.run(name.space, name.key).changes > 0;
    },
  };
}
