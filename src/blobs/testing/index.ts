/** What every ActionIndex must do, as tests: call `exerciseIndex` from the test file of an implementation. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import type { ActionIndex, Entry, EntryKey, NewEntry } from "#blobs/action-index.ts";
import { bytes } from "./exercise.ts";
import { sha256Digest } from "#blobs/sha256.ts";

export type IndexRig = {
  readonly index: ActionIndex;
  /** Opens the index again, as after a restart or on another node; left out if entries do not survive the process. */
  readonly reopened?: () => Promise<IndexRig>;
  readonly dispose?: () => Promise<void>;
};

const key: EntryKey = { tenant: "mill", space: "ac/sha256/main", name: "0123/42" };
const entry = (value: string, notes?: Entry["notes"]): NewEntry => ({
  digest: sha256Digest(bytes(value)),
  principal: "ada",
  atMs: 1_700_000_000_123,
  ...(notes && { notes }),
});

async function put(index: ActionIndex, at: EntryKey, value: NewEntry, ifVersion?: number): Promise<number> {
  const written = await index.put(at, value, ifVersion);
  ok(written.kind === "written");
  return written.version;
}

async function all(index: ActionIndex, filter: { tenant: string; spacePrefix?: string }, limit: number) {
  const found: (EntryKey & Entry)[] = [];
  for (let after: string | undefined; ;) {
    const page = await index.list({ ...filter, limit, ...(after !== undefined && { after }) });
    ok(page.entries.length <= limit);
    found.push(...page.entries);
    if (page.next === undefined) return found;
    after = page.next;
  }
}

export function exerciseIndex(name: string, make: () => Promise<IndexRig>): void {
  const check = (title: string, body: (index: ActionIndex, rig: IndexRig) => Promise<void>): void => {
    test(title, async () => {
      const rig = await make();
      try {
        await body(rig.index, rig);
      } finally {
        await rig.dispose?.();
      }
    });
  };

  describe(`${name} passes the suite of action indexes`, () => {
    check("B7: an entry is read as it was written last", async (index) => {
      equal(await index.get(key), undefined);
      const first = await put(index, key, entry("one", { tag: "ä=1", duration: "17" }));
      deepEqual(await index.get(key), { ...entry("one", { tag: "ä=1", duration: "17" }), version: first });
      const second = await put(index, key, { ...entry("two"), principal: "grace", atMs: 5 });
      ok(second > first && first > 0);
      deepEqual(await index.get(key), { ...entry("two"), principal: "grace", atMs: 5, version: second });
    });

    check("tenants, spaces and names are separate", async (index) => {
      const keys = [
        key,
        { ...key, tenant: "other" },
        { ...key, space: "ac/sha256" },
        { ...key, space: "ac/sha256/main/0123", name: "42" },
        { ...key, name: "0123/420" },
        { ...key, name: "0123/42 " },
        { ...key, name: "0123/42\u00e9" },
      ];
      for (const [i, one] of keys.entries()) await put(index, one, entry(String(i)));
      for (const [i, one] of keys.entries()) equal((await index.get(one))?.digest, entry(String(i)).digest);
    });

    check("B7: a conditional write succeeds only on the version it names", async (index) => {
      const first = await put(index, key, entry("one"), 0);
      const refused = await index.put(key, entry("two"), 0);
      deepEqual(refused, { kind: "conflict", current: { ...entry("one"), version: first } });
      const second = await put(index, key, entry("two"), first);
      equal((await index.put(key, entry("three"), first)).kind, "conflict");
      equal((await index.get(key))?.version, second);
      deepEqual(await index.put({ ...key, name: "none" }, entry("x"), 7), { kind: "conflict", current: undefined });
    });

    check("B7: of many writers with one expected version, one succeeds", async (index) => {
      const version = await put(index, key, entry("start"));
      const written = await Promise.all(
        Array.from({ length: 20 }, (_, i) => index.put(key, entry(String(i)), version)),
      );
      equal(written.filter(({ kind }) => kind === "written").length, 1);
    });

    check("a removed entry is gone, and its versions are never reused", async (index) => {
      const first = await put(index, key, entry("one"));
      equal(await index.remove(key, first + 1), false);
      equal(await index.remove(key, first), true);
      equal(await index.remove(key), false);
      equal(await index.get(key), undefined);
      const second = await put(index, key, entry("two"), 0);
      ok(second > first, "or a stale holder of the first version could overwrite it");
      equal(await index.remove(key), true);
    });

    check("a list returns every entry once, page by page", async (index) => {
      const names = Array.from({ length: 25 }, (_, i) => `n${i}`);
      for (const one of names) await put(index, { ...key, name: one }, entry(one));
      await put(index, { ...key, space: "gradle" }, entry("gradle"));
      await put(index, { ...key, tenant: "other" }, entry("foreign"));
      for (const limit of [1, 7, 25, 100]) {
        const found = await all(index, { tenant: "mill", spacePrefix: "ac/" }, limit);
        deepEqual(found.map((one) => one.name).toSorted(), names.toSorted());
        ok(found.every(({ tenant, space }) => tenant === "mill" && space === key.space));
      }
      equal((await all(index, { tenant: "mill" }, 10)).length, 26);
      deepEqual(await index.list({ tenant: "nobody", limit: 5 }), { entries: [] });
      const [gradle] = await all(index, { tenant: "mill", spacePrefix: "gradle" }, 5);
      ok(gradle);
      deepEqual(gradle, { ...key, space: "gradle", ...entry("gradle"), version: gradle.version });
    });

    check("B7: an entry survives the process", async (index, { reopened }) => {
      if (!reopened) return;
      const version = await put(index, key, entry("kept", { a: "b" }));
      const again = await reopened();
      try {
        deepEqual(await again.index.get(key), { ...entry("kept", { a: "b" }), version });
        ok((await put(again.index, key, entry("newer"), version)) > version);
      } finally {
        await again.dispose?.();
      }
    });

    check("answers without waiting equal those with waiting", async (index) => {
      if (!index.prompt) return;
      equal(index.prompt(key), undefined);
      await put(index, key, entry("one"));
      const prompt = index.prompt(key);
      if (prompt) deepEqual(prompt, await index.get(key));
      await index.remove(key);
      equal(index.prompt(key), undefined);
    });

    check("promptHash returns what prompt returns for the same name", async (index) => {
      const name = `${"0123456789abcdef".repeat(4)}/142`;
      const words = new Uint32Array(Uint8Array.from(Buffer.from(name.slice(0, 64), "hex")).buffer);
      const at = { tenant: "mill", space: "ac/sha256", name };
      if (!index.promptHash) return;
      equal(index.promptHash(at, words, 142), undefined);
      await put(index, at, entry("one"));
      const prompt = index.promptHash(at, words, 142);
      if (prompt) deepEqual(prompt, await index.get(at));
      equal(index.promptHash(at, words, 143), undefined);
      equal(index.promptHash({ ...at, space: "ac/blake3" }, words, 142), undefined);
      equal(index.promptHash({ ...at, tenant: "other" }, words, 142), undefined);
      await put(index, at, entry("two"));
      const after = index.promptHash(at, words, 142);
      if (after) deepEqual(after, await index.get(at));
      await index.remove(at);
      equal(index.promptHash(at, words, 142), undefined);
    });

    check("names and notes have limits", async (index) => {
      const longest = { ...key, space: "s".repeat(300), name: "ü".repeat(500) };
      await put(index, longest, entry("long"));
      equal((await index.get(longest))?.digest, entry("long").digest);
      const wrong = [
        { at: { ...key, space: "s".repeat(301) }, value: entry("x") },
        { at: { ...key, name: "n".repeat(501) }, value: entry("x") },
        { at: key, value: entry("x", { much: "x".repeat(5_000) }) },
      ];
      for (const { at, value } of wrong) await rejects(index.put(at, value), (e) => isFault(e, "invalid"));
    });
  });
}
