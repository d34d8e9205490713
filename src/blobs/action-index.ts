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
  /** Grows with every write of this key, by whomever. */
  readonly version: number;
  readonly principal: string;
  readonly atMs: number;
  /** What a protocol wants back beside the bytes, such as the headers of an artifact: at most 4 KiB. */
  readonly notes?: Readonly<Record<string, string>>;
};

export type NewEntry = Omit<Entry, "version">;

export type Written =
  | { readonly kind: "written"; readonly version: number }
  | { readonly kind: "conflict"; readonly current: Entry | undefined };

export type EntryFilter = {
  readonly tenant: string;
  /** All spaces that begin with it; every space when left out. */
  readonly spacePrefix?: string;
  /** Where the last page ended. */
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
  /** `ifVersion` 0: only if there is none yet. Left out: whatever is there. */
  put(key: EntryKey, entry: NewEntry, ifVersion?: number): Promise<Written>;
  remove(key: EntryKey, ifVersion?: number): Promise<boolean>;
  /** In some order that stays the same while nothing changes; each entry at most once. */
  list(filter: EntryFilter): Promise<EntryPage>;
  /** The entry, if it is known without waiting and as `get` would tell it now. */
  readonly prompt?: (key: EntryKey) => Entry | undefined;
  /** The same for the name `<hash>/<size>` of a hash of 32 bytes, by its words: no text is made of it. */
  readonly promptHash?: (owner: Omit<EntryKey, "name">, hash: Uint32Array, sizeBytes: number) => Entry | undefined;
};
