/**
 * Which actions of a target were seen before, so that a miss can be compared with the closest of them. Kept in the
 * index of names, written in the background and a few at a time: a hit costs nothing, a miss a note in memory. A crash
 * loses the explanation of the last seconds' misses.
 */
import { hash } from "node:crypto";
import type { Digest } from "#base/digest.ts";
import type { ActionIndex, EntryKey } from "#blobs/action-index.ts";

/** Why there was no result: `incomplete` names a missing blob of it. */
export type MissReason =
  | { readonly kind: "never-stored" }
  | { readonly kind: "incomplete"; readonly missing: Digest }
  | { readonly kind: "revoked" };

/** The client's metadata about a call. */
export type Subject = { readonly target: string; readonly mnemonic: string };

export type Miss = Subject & { readonly atMs: number; readonly invocation: string; readonly reason: MissReason };

export type Stored = { readonly action: Digest; readonly atMs: number };

export type SeenOptions = {
  readonly index: ActionIndex;
  readonly wallMs: () => number;
  readonly misses?: number;
  readonly subjects?: number;
};

/** Enough to compare, few enough for an entry's notes. */
const storedMax = 16;
const missesMaxDefault = 50_000;
const subjectsMaxDefault = 20_000;

type Waiting = { readonly key: EntryKey; readonly digest: Digest; readonly notes: Readonly<Record<string, string>> };

export class Seen {
  readonly #options: SeenOptions;
  readonly #misses = new Map<string, { readonly key: EntryKey; readonly action: Digest; readonly miss: Miss }>();
  readonly #stored = new Map<string, { readonly key: EntryKey; readonly stored: readonly Stored[] }>();
  readonly #unwritten = new Map<string, Waiting>();
  #writing = false;

  constructor(options: SeenOptions) {
    this.#options = options;
  }

  missed(tenant: string, instance: string, action: Digest, miss: Omit<Miss, "atMs">): void {
    const key = missKey(tenant, instance, action);
    const at = textOf(key);
    const known = { ...miss, atMs: this.#options.wallMs() };
    keepYoungest(this.#misses, at, { key, action, miss: known }, this.#options.misses ?? missesMaxDefault);
    this.#write({ key, digest: action, notes: { miss: JSON.stringify(known) } });
  }

  async stored(tenant: string, instance: string, action: Digest, subject: Subject): Promise<void> {
    const before = await this.earlier(tenant, instance, subject);
    const now = { action, atMs: this.#options.wallMs() };
    const stored = [now, ...before.filter((one) => one.action !== action)].slice(0, storedMax);
    const key = subjectKey(tenant, instance, subject);
    keepYoungest(this.#stored, textOf(key), { key, stored }, this.#options.subjects ?? subjectsMaxDefault);
    this.#write({ key, digest: action, notes: { stored: JSON.stringify(stored) } });
  }

  /** The last miss of this action, if it is still known. */
  async missOf(tenant: string, instance: string, action: Digest): Promise<Miss | undefined> {
    const key = missKey(tenant, instance, action);
    const inMemory = this.#misses.get(textOf(key));
    if (inMemory) return inMemory.miss;
    const notes = (await this.#options.index.get(key))?.notes;
    return notes?.["miss"] === undefined ? undefined : (JSON.parse(notes["miss"]) as Miss);
  }

  /** The last misses that are in memory, newest first. */
  recent(tenant: string, limit: number, target?: string): readonly (Miss & { readonly action: Digest })[] {
    const found: (Miss & { readonly action: Digest })[] = [];
    for (const { key, action, miss } of [...this.#misses.values()].toReversed()) {
      if (key.tenant === tenant && (target === undefined || miss.target === target)) found.push({ ...miss, action });
      if (found.length >= limit) break;
    }
    return found;
  }

  /** The actions of a target that were stored, newest first. */
  async earlier(tenant: string, instance: string, subject: Subject): Promise<readonly Stored[]> {
    const key = subjectKey(tenant, instance, subject);
    const inMemory = this.#stored.get(textOf(key));
    if (inMemory) return inMemory.stored;
    const notes = (await this.#options.index.get(key))?.notes;
    return notes?.["stored"] === undefined ? [] : (JSON.parse(notes["stored"]) as Stored[]);
  }

  /** Resolves when everything recorded so far is in the index, or failed to be written. */
  async written(): Promise<void> {
    while (this.#writing || this.#unwritten.size > 0) await this.#flush();
  }

  #write(waiting: Waiting): void {
    keepYoungest(this.#unwritten, textOf(waiting.key), waiting, unwrittenMax);
    if (!this.#writing) void this.#flush();
  }

  async #flush(): Promise<void> {
    if (this.#writing) return void (await new Promise(setImmediate));
    this.#writing = true;
    try {
      for (const [at, { key, digest, notes }] of this.#unwritten) {
        this.#unwritten.delete(at);
        const entry = { digest, principal: "millrace", atMs: this.#options.wallMs(), notes };
        // A lost explanation is no reason to fail a build.
        await this.#options.index.put(key, entry).catch(() => undefined);
      }
    } finally {
      this.#writing = false;
    }
  }
}

const unwrittenMax = 10_000;

/** Target names can be long, and keys should not reveal them. */
const subjectKey = (tenant: string, instance: string, { target, mnemonic }: Subject): EntryKey => ({
  tenant,
  space: `seen/${instance}`,
  name: hash("sha256", `${mnemonic}\n${target}`),
});

const missKey = (tenant: string, instance: string, action: Digest): EntryKey => ({
  tenant,
  space: `missed/${instance}`,
  name: action,
});

const textOf = ({ tenant, space, name }: EntryKey): string => `${tenant}\n${space}\n${name}`;

/** A Map keeps insertion order: the first entry is the oldest. */
function keepYoungest<T>(map: Map<string, T>, at: string, value: T, max: number): void {
  map.delete(at);
  map.set(at, value);
  if (map.size > max) for (const oldest of map.keys()) return void map.delete(oldest);
}
