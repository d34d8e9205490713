/** Shared entries in memory: for one node without a durable journal, for simulation and for tests. */
import { checkValue, type Entries, type EntryName } from "./entries.ts";

type Kept = { readonly owner: string; readonly value: string; readonly untilMs: number };

export function memoryEntries(nowMs: () => number): Entries {
  const spaces = new Map<string, Map<string, Kept>>(); // each oldest first
  const spaceOf = (space: string): Map<string, Kept> => {
    let found = spaces.get(space);
    if (!found) spaces.set(space, (found = new Map()));
    return found;
  };
  const live = ({ space, key }: EntryName): Kept | undefined => {
    const found = spaceOf(space).get(key);
    return found && found.untilMs > nowMs() ? found : undefined;
  };
  return {
    async add({ space, key, owner, value, forMs, ownerMax }) {
      checkValue("add an entry", value);
      const found = live({ space, key });
      if (found) return { added: false, value: found.value };
      const entries = spaceOf(space);
      entries.delete(key);
      entries.set(key, { owner, value, untilMs: nowMs() + forMs });
      trim(entries, owner, ownerMax, nowMs());
      return { added: true };
    },
    async read(name) {
      const found = live(name);
      return found && { value: found.value, remainingMs: found.untilMs - nowMs() };
    },
    async replace(name, from, { value, forMs }) {
      checkValue("replace an entry", value);
      const found = live(name);
      if (found?.value !== from) return false;
      spaceOf(name.space).set(name.key, { ...found, value, untilMs: nowMs() + forMs });
      return true;
    },
    async remove(name, value) {
      if (live(name)?.value !== value) return false;
      return spaceOf(name.space).delete(name.key);
    },
  };
}

function trim(entries: Map<string, Kept>, owner: string, ownerMax: number, nowMs: number): void {
  for (const [key, { untilMs }] of entries) if (untilMs <= nowMs) entries.delete(key);
  const own = [...entries].filter(([, entry]) => entry.owner === owner);
  for (const [key] of own.slice(0, Math.max(0, own.length - ownerMax))) entries.delete(key);
}
