/**
 * The action index in a bucket: one small object for each entry, replaced only if its etag is the one that was read
 * (B7). A removed entry leaves a tombstone with its last version, so that no version repeats. The bucket must honour
 * If-Match and If-None-Match on writes; `checkConditions` tests that.
 */
import { hash, randomUUID } from "node:crypto";
import { Fault, isFault } from "#base/fault.ts";
import type { ActionIndex, Entry, EntryKey, NewEntry, Written } from "#blobs/action-index.ts";
import { checkEntry } from "#blobs/memory/memory-index.ts";
import { bytesOf } from "./http-call.ts";
import type { S3Client } from "./s3-client.ts";
import { Gate } from "#blobs/tiers/gate.ts";

/** The content of an object. `write` is a unique id of the write that made it. */
type Kept = { readonly key: EntryKey; readonly version: number; readonly entry?: NewEntry; readonly write: string };

type Found = { readonly kept: Kept; readonly etag: string };

const objectBytesMax = 64 * 1024;
const triesMax = 30;

export function s3Index({ client, prefix }: { readonly client: S3Client; readonly prefix: string }): ActionIndex {
  const gate = new Gate(16);
  const root = `${prefix}names/`;

  const find = async (object: string): Promise<Found | undefined> => {
    const got = await client.get(object);
    if (!got) return undefined;
    const text = (await bytesOf(got.body, objectBytesMax)).toString("utf8");
    return { kept: JSON.parse(text) as Kept, etag: got.etag };
  };

  /** Undefined if another writer was faster. */
  const replace = async (object: string, found: Found | undefined, next: Kept): Promise<number | undefined> => {
    const condition = found ? { ifMatch: found.etag } : { ifNoneMatch: "*" as const };
    const answer = await client.put(object, Buffer.from(JSON.stringify(next)), condition);
    if (answer !== "conflict") return next.version;
    // After a lost answer the client retries, and then the "other" writer may be ourselves.
    return (await find(object))?.kept.write === next.write ? next.version : undefined;
  };

  /** Repeats until no other writer interferes, or `refuse` says that the condition does not hold. */
  const change = async <T>(
    key: EntryKey,
    refuse: (current: Entry | undefined) => T | undefined,
    entry: NewEntry | undefined,
  ): Promise<{ readonly version: number } | { readonly refused: T }> => {
    const object = objectOf(root, key);
    for (let tries = 0; tries < triesMax; tries += 1) {
      const found = await find(object);
      const refused = refuse(entryOf(found?.kept));
      if (refused !== undefined) return { refused };
      const version = (found?.kept.version ?? 0) + 1;
      const next = { key, version, ...(entry && { entry }), write: randomUUID() };
      if ((await replace(object, found, next)) !== undefined) return { version };
    }
    throw new Fault("unavailable", "name entry", { why: "too many concurrent writers of the same name" });
  };

  return {
    get: async (key) => entryOf((await find(objectOf(root, key)))?.kept),
    async put(key, entry, ifVersion): Promise<Written> {
      checkEntry(key, entry.notes);
      const done = await change(
        key,
        (current) => {
          if (ifVersion === undefined || ifVersion === (current?.version ?? 0)) return undefined;
          return { kind: "conflict", current } as const;
        },
        entry,
      );
      return "refused" in done ? done.refused : { kind: "written", version: done.version };
    },
    async remove(key, ifVersion) {
      const isOther = (current: Entry | undefined): true | undefined =>
        !current || (ifVersion !== undefined && ifVersion !== current.version) ? true : undefined;
      return "version" in (await change(key, isOther, undefined));
    },
    async list({ tenant, spacePrefix = "", after, limit }) {
      const entries: (EntryKey & Entry)[] = [];
      const below = `${root}${encoded(tenant)}/${encoded(spacePrefix)}`;
      let last = after;
      for (;;) {
        const page = await client.list(below, last, Math.min(1_000, limit - entries.length));
        const found = await Promise.all(page.keys.map((object) => gate.through(() => find(object))));
        for (const one of found) {
          const entry = entryOf(one?.kept);
          if (one && entry) entries.push({ ...one.kept.key, ...entry });
        }
        last = page.keys.at(-1) ?? last;
        if (page.isLast) return { entries };
        if (entries.length >= limit && last !== undefined) return { entries, next: last };
      }
    },
  };
}

function entryOf(kept: Kept | undefined): Entry | undefined {
  return kept?.entry && { ...kept.entry, version: kept.version };
}

/** Percent-encodes by bytes, which keeps prefixes: the encoding of a prefix is a prefix of the encoding. */
const encoded = (text: string): string =>
  text.replaceAll(/[^A-Za-z0-9._-]/gu, (character) =>
    Array.from(Buffer.from(character), (byte) => `=${byte.toString(16).padStart(2, "0")}`).join(""),
  );

const keyBytesMax = 1_000;

/** Object keys are shorter than names may be: a long name is replaced by its hash, and the object holds the name. */
function objectOf(root: string, { tenant, space, name }: EntryKey): string {
  const folder = `${root}${encoded(tenant)}/${encoded(space)}/`;
  const plain = folder + encoded(name);
  if (plain.length <= keyBytesMax) return plain;
  const short = `${folder}~${hash("sha256", name, "hex")}`;
  if (short.length > keyBytesMax)
    throw new Fault("invalid", "name entry", { space: space.slice(0, 100), why: "the space is too long for a bucket" });
  return short;
}

/** Throws unless the bucket refuses a conditional write whose condition does not hold. */
export async function checkConditions(client: S3Client, prefix: string): Promise<void> {
  const object = `${prefix}names/check-${randomUUID()}`;
  const write = (condition: object) =>
    client.put(object, Buffer.from("{}"), condition).catch((error: unknown) => {
      if (isFault(error, "internal") && error.facts["status"] === 501) return "unheard of" as const;
      throw error;
    });
  try {
    const first = await write({ ifNoneMatch: "*" });
    const second = await write({ ifNoneMatch: "*" });
    const third = await write({ ifMatch: '"00000000000000000000000000000000"' });
    if (typeof first !== "object" || second !== "conflict" || third !== "conflict")
      throw new Fault("invalid", "use a bucket for the action index", {
        why: "it does not honour If-Match and If-None-Match on PUT; keep the names in PostgreSQL instead",
      });
  } finally {
    await client.remove(object).catch(() => {});
  }
}
