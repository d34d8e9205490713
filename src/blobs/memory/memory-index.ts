import { Fault } from "#base/fault.ts";
import type { ActionIndex, Entry, EntryKey } from "#blobs/action-index.ts";

export const entryLimits = { spaceLengthMax: 300, nameLengthMax: 500, notesBytesMax: 4 * 1024 } as const;

/** Throws "invalid" for a key or notes beyond the limits; every implementation applies the same limits. */
export function checkEntry({ space, name }: EntryKey, notes: Entry["notes"]): void {
  const refuse = (why: string): never => {
    throw new Fault("invalid", "name entry", { space: space.slice(0, 100), name: name.slice(0, 100), why });
  };
  if (space === "" || space.length > entryLimits.spaceLengthMax) refuse("a space must have 1 to 300 characters");
  if (name === "" || name.length > entryLimits.nameLengthMax) refuse("a name must have 1 to 500 characters");
  if (/[\0\ud800-\udfff]/u.test(space + name)) refuse("it has characters that cannot be stored");
  if (notes && Buffer.byteLength(JSON.stringify(notes)) > entryLimits.notesBytesMax)
    refuse("notes may have at most 4 KiB");
}

/** The action index in memory (B7). */
export function createMemoryIndex(): ActionIndex {
  const entries = new Map<string, EntryKey & Entry>();
  const at = ({ tenant, space, name }: EntryKey): string => JSON.stringify([tenant, space, name]);
  const get = (key: EntryKey): Entry | undefined => {
    const found = entries.get(at(key));
    return found && entryOf(found);
  };
  // One counter for all keys: a key that is removed and written again must not repeat a version that a caller still
  // holds.
  let version = 0;

  return {
    get: async (key) => get(key),
    async put(key, entry, ifVersion) {
      checkEntry(key, entry.notes);
      const current = get(key);
      if (ifVersion !== undefined && ifVersion !== (current?.version ?? 0)) return { kind: "conflict", current };
      version += 1;
      entries.set(at(key), { ...key, ...entry, version });
      return { kind: "written", version };
    },
    async remove(key, ifVersion) {
      const current = get(key);
      if (!current || (ifVersion !== undefined && ifVersion !== current.version)) return false;
      return entries.delete(at(key));
    },
    async list({ tenant, spacePrefix = "", after = "", limit }) {
      const found = [...entries.keys()].toSorted().filter((name) => {
        const entry = entries.get(name);
        return entry?.tenant === tenant && entry.space.startsWith(spacePrefix) && name > after;
      });
      const page = found.slice(0, limit);
      const last = page.at(-1);
      const next = last !== undefined && found.length > page.length ? { next: last } : {};
      return { entries: page.flatMap((name) => entries.get(name) ?? []), ...next };
    },
    prompt: get,
  };
}

const entryOf = ({ digest, version, principal, atMs, notes }: Entry): Entry => ({
  digest,
  version,
  principal,
  atMs,
  ...(notes && { notes }),
});
