/** Shared entries in PostgreSQL. */
import { checkValue, type Entries } from "#base/entries.ts";
import { Fault } from "#base/fault.ts";
import { storeNow } from "./append.ts";
import type { Ports } from "./ownership.ts";

export const entriesTable = (schema: string): readonly string[] => [
  `create table ${schema}.entries (id int8 generated always as identity primary key, space text not null,
    key text not null, owner text not null, value text not null, until_ms float8 not null, unique (space, key))`,
  `create index entries_end on ${schema}.entries (until_ms)`,
  `create index entries_owner on ${schema}.entries (space, owner, id)`,
];

/** How many ended entries one `add` clears away at most. */
const sweepMax = 100;
/** An entry can end between the insert that met it and the look at it. */
const triesMax = 5;

export function entriesIn({ lane, schema, offsetMs }: Ports): Entries {
  const table = `${schema}.entries`;
  const read: Entries["read"] = async ({ space, key }) => {
    const [found] = await lane.read<{ value: string; left: number }>("read an entry", {
      name: "entry-read",
      text: `select value, until_ms - (${storeNow("$3")}) as left from ${table}
        where space = $1::text and key = $2::text and until_ms > ${storeNow("$3")}`,
      values: [space, key, offsetMs()],
    });
    return found && { value: found.value, remainingMs: Number(found.left) };
  };
  return {
    async add(entry) {
      const { space, key, owner, value, forMs, ownerMax } = entry;
      checkValue("add an entry", value);
      for (let tries = 0; tries < triesMax; tries += 1) {
        const isAdded = await lane.transaction("add an entry", async (run) => {
          // A new entry takes the place of an ended one; this waits for others that insert at the same time.
          const added = await run({
            name: "entry-add",
            text: `insert into ${table} as e (space, key, owner, value, until_ms)
              values ($1::text, $2::text, $3::text, $4::text, ${storeNow("$6")} + $5::float8)
              on conflict (space, key) do update set id = default, owner = excluded.owner, value = excluded.value,
                until_ms = excluded.until_ms where e.until_ms <= ${storeNow("$6")} returning id`,
            values: [space, key, owner, value, forMs, offsetMs()],
          });
          if (added.length === 0) return false;
          // Rows that others clear away are theirs: two that sweep must not wait for each other.
          await run({
            name: "entry-sweep",
            text: `delete from ${table} where id in (select id from ${table} where until_ms <= ${storeNow("$1")}
              limit $2::int4 for update skip locked)`,
            values: [offsetMs(), sweepMax],
          });
          await run({
            name: "entry-trim",
            text: `delete from ${table} where id in (select id from ${table} where id in
              (select id from ${table} where space = $1::text and owner = $2::text order by id desc offset $3::int4)
              for update skip locked)`,
            values: [space, owner, ownerMax],
          });
          return true;
        });
        if (isAdded) return { added: true };
        const found = await read(entry);
        if (found) return { added: false, value: found.value };
      }
      throw new Fault("unavailable", "add an entry", { why: "entries of this name come and go" });
    },
    read,
    async replace({ space, key }, from, { value, forMs }) {
      checkValue("replace an entry", value);
      const done = await lane.write("replace an entry", {
        name: "entry-replace",
        text: `update ${table} set value = $4::text, until_ms = ${storeNow("$6")} + $5::float8
          where space = $1::text and key = $2::text and value = $3::text and until_ms > ${storeNow("$6")} returning id`,
        values: [space, key, from, value, forMs, offsetMs()],
      });
      return done.length > 0;
    },
    async remove({ space, key }, value) {
      const done = await lane.write("remove an entry", {
        name: "entry-remove",
        text: `delete from ${table} where space = $1::text and key = $2::text and value = $3::text
          and until_ms > ${storeNow("$4")} returning id`,
        values: [space, key, value, offsetMs()],
      });
      return done.length > 0;
    },
  };
}
