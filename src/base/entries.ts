/**
 * Small values that all nodes of a cluster share for a limited time: stored answers of requests, codes that sign a
 * browser in, the key that seals browser sessions. The journal's database keeps them; no decision about work reads
 * them.
 *
 * EN1 Of all that add under one name, one succeeds until its entry ends; the others get the value that is there.
 * EN2 `replace` and `remove` change an entry only while it has the value that the caller saw.
 * EN3 An owner has at most `ownerMax` entries in a space: the oldest make way. No entry outlives its time.
 */
import { Fault } from "./fault.ts";

export type EntryName = {
  /** What it is used for, such as "answer". */
  readonly space: string;
  readonly key: string;
};

export type NewEntry = EntryName & {
  /** Entries are counted by owner: a tenant, a principal. */
  readonly owner: string;
  readonly value: string;
  readonly forMs: number;
  readonly ownerMax: number;
};

export type Added = { readonly added: true } | { readonly added: false; readonly value: string };

export type Entries = {
  add(entry: NewEntry): Promise<Added>;
  read(name: EntryName): Promise<{ readonly value: string; readonly remainingMs: number } | undefined>;
  /** False: the entry has ended, or has another value by now. */
  replace(name: EntryName, from: string, to: { readonly value: string; readonly forMs: number }): Promise<boolean>;
  /** False: another caller removed it first, or it has another value by now. */
  remove(name: EntryName, value: string): Promise<boolean>;
};

export const entryValueCharactersMax = 128 * 1024;

export function checkValue(doing: string, value: string): void {
  if (value.length > entryValueCharactersMax)
    throw new Fault("invalid", doing, { characters: value.length, charactersMax: entryValueCharactersMax });
}
