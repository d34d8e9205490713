/**
 * Names for blobs that may change: what an action's result is, what a build tool stored under its own key. The only
 * thing here that is not content-addressed, so every entry says who wrote it and when.
 *
 * B7 An entry is read as it was written last, whole; a conditional write succeeds only on the version it names.
 */
import type { Digest } from "#base/digest.ts";

/**
 * `space` keeps protocols and instances apart, such as "ac/sha256/main" or "gradle"; `name` is the key in it. A space
 * is at most 300 characters and a name at most 500.
 */
export type EntryKey = { readonly tenant: string; readonly space: string; readonly name: string };

export type Entry = {
  readonly digest: Digest;
  /** Grows with every write of this key, whichever node writes. */
  readonly version: number;
  readonly principal: string;
  readonly atMs: number;
  /** Extra facts that a protocol returns with the bytes, such as an artifact's headers: at most 4 KiB. */
  readonly notes?: Readonly<Record<string, string>>;
};

export type NewEntry = Omit<Entry, "version">;

export type Written =
  | { readonly kind: "written"; readonly version: number }
  | { readonly kind: "conflict"; readonly current: Entry | undefined };

export type EntryFilter = {
  readonly tenant: string;
  /** Matches all spaces that begin with it; every space if left out. */
  readonly spacePrefix?: string;
  /** The `next` of the previous page. */
  readonly after?: string;
  readonly limit: number;
};

export type EntryPage = {
  readonly entries: readonly (EntryKey & Entry)[];
  /** Left out on the last page. */
  readonly next?: string;
};

export type ActionIndex = {
  get(key: EntryKey): Promise<Entry | undefined>;
  /** `ifVersion` 0: write only if the key has no entry yet. Left out: write in any case. */
  put(key: EntryKey, entry: NewEntry, ifVersion?: number): Promise<Written>;
  remove(key: EntryKey, ifVersion?: number): Promise<boolean>;
  /** The order is stable while nothing changes, and each entry comes at most once. */
  list(filter: EntryFilter): Promise<EntryPage>;
  /** The entry that `get` would return, if the index has it in memory; undefined if `get` must be asked. */
  readonly prompt?: (key: EntryKey) => Entry | undefined;
  /** Like `prompt` for the name `<hash>/<size>` of a 32-byte hash, given as words: saves building the name. */
  readonly promptHash?: (owner: Omit<EntryKey, "name">, hash: Uint32Array, sizeBytes: number) => Entry | undefined;
};
