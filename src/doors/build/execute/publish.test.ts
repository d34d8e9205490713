import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { ActionIndex } from "#blobs/action-index.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import type { Publication } from "#shard/outbox/outbox.ts";
import type { ActionSpec } from "#doors/build/plan.ts";
import { buildPublisher, publicationText, type Wanted } from "./publish.ts";
import { trustSpace } from "#doors/build/cache/trust-rules.ts";

const key = { tenant: "mill", space: "ac/sha256", name: `${"a".repeat(64)}/1` };
const digest = (letter: string): string => `${letter.repeat(64)}/2`;
const nowMs = 1_000;
const { signal } = new AbortController();

type Given = {
  readonly spec?: Partial<ActionSpec>;
  readonly wanted?: Partial<Wanted>;
  readonly pinned?: readonly string[];
  readonly atMs?: number;
};

const of = { fn: "sha256", instance: "", action: key.name } as const;
const spec: Partial<ActionSpec> = { ...of, merge: "m", doNotCache: false, principal: "miller" };

function publication({ spec: more, wanted, pinned, atMs = 100 }: Given = {}): Publication {
  const named = wanted?.digest ?? digest("b");
  const publish = JSON.stringify({ space: key.space, name: key.name, ...wanted, digest: named });
  const result = { payload: "", digests: pinned ?? [named], publish };
  const about = { shard: 0, tenant: "mill", door: "build", job: 1, task: 1, generation: 1, committedAtMs: atMs };
  return { ...about, spec: JSON.stringify({ ...spec, ...more }), publish, result };
}

async function publish(index: ActionIndex, given: Publication | Given = {}): Promise<string> {
  const asked = "publish" in given ? given : publication(given);
  let said = "";
  const refused = (_: Publication, why: string): void => void (said = why);
  const outcome = await buildPublisher({ index, wallMs: () => nowMs, refused })(asked, signal);
  return said === "" ? outcome : `${outcome}: ${said}`;
}

const first = { because: { kind: "never-stored" } } as const;

describe("a result is published", () => {
  test("once, however often it is done", async () => {
    const index = createMemoryIndex();
    deepEqual([await publish(index), await publish(index)], ["done", "done"]);
    const entry = await index.get(key);
    deepEqual([entry?.digest, entry?.principal, entry?.atMs, entry?.version], [digest("b"), "miller", 100, 1]);
  });

  test("E1: it replaces an older one, never a younger one", async () => {
    const index = createMemoryIndex();
    await publish(index);
    await publish(index, { wanted: { digest: digest("c") }, atMs: 200 });
    equal((await index.get(key))?.digest, digest("c"));
    equal(await publish(index), "done");
    equal((await index.get(key))?.digest, digest("c"), "a late publication changes nothing");
  });

  test("E1: one that was requested when there was none does not replace the first", async () => {
    const index = createMemoryIndex();
    await publish(index, { spec: first });
    await publish(index, { spec: first, wanted: { digest: digest("c") }, atMs: 200 });
    equal((await index.get(key))?.digest, digest("b"));
    await publish(index, { wanted: { digest: digest("c") }, atMs: 200 });
    equal((await index.get(key))?.digest, digest("c"), "who looked past the cache wants it replaced");
  });

  test("without reading first; the refused write tells what is there (K7)", async () => {
    const index = createMemoryIndex();
    let looks = 0;
    const counted: ActionIndex = { ...index, get: (at) => ((looks += 1), index.get(at)) };
    await publish(counted, { spec: first });
    await publish(counted, { spec: first, wanted: { digest: digest("c") }, atMs: 200 });
    deepEqual([looks, (await index.get(key))?.digest], [0, digest("b")]);
    equal(await publish(counted, { wanted: { digest: digest("c") }, atMs: 200 }), "done");
    equal(await publish(counted, { wanted: { digest: digest("c") }, atMs: 200 }), "done");
    deepEqual([looks, (await index.get(key))?.digest], [0, digest("c")]);
  });

  test("later, when others keep writing at the same time", async () => {
    const index = createMemoryIndex();
    const busy: ActionIndex = { ...index, put: async () => ({ kind: "conflict", current: undefined }) };
    equal(await publish(busy), "later");
    let conflicts = 2;
    const calmer: ActionIndex = {
      ...index,
      put: async (...write) => (conflicts-- > 0 ? { kind: "conflict", current: undefined } : index.put(...write)),
    };
    equal(await publish(calmer), "done");
    equal((await index.get(key))?.digest, digest("b"));
  });

  test("T1: with a time no later than now; otherwise no rule could revoke it", async () => {
    const index = createMemoryIndex();
    await publish(index, { atMs: nowMs + 1e9 });
    equal((await index.get(key))?.atMs, nowMs);
  });
});

describe("E4: an executor decides nothing about a publication except the blob", () => {
  const another = "done: it names another action than its task's";
  const nonsense = "done: it does not say which blob is the result of which action";

  test("its worker asks for what its task allows", async () => {
    const index = createMemoryIndex();
    const blake3 = { fn: "blake3", instance: "main", action: `blake3:${key.name}` } as const;
    const text = publicationText(blake3, digest("b"));
    equal(await publish(index, { ...publication({ spec: blake3 }), publish: text }), "done");
    const entry = await index.get({ tenant: "mill", space: "ac/blake3/main", name: key.name });
    equal(entry?.digest, digest("b"));
  });

  for (const [what, given, outcome] of [
    ["another action", { wanted: { name: `${"c".repeat(64)}/1` } }, another],
    ["another instance", { wanted: { space: "ac/sha256/release" } }, another],
    ["another digest function", { wanted: { space: "ac/blake3" } }, another],
    ["something else in the index", { wanted: { space: trustSpace } }, another],
    ["what is not to be cached", { spec: { doNotCache: true } }, "done: its action is not to be cached"],
    ["what nobody pinned", { pinned: [digest("c")] }, "done: it names a blob that the result does not name"],
    ["no blob", { wanted: { digest: "x" } }, nonsense],
    ["no place", { wanted: { space: 7 as unknown as string } }, nonsense],
  ] as const)
    test(`asked to publish ${what}, nothing is published`, async () => {
      const index = createMemoryIndex();
      equal(await publish(index, given), outcome);
      deepEqual((await index.list({ tenant: "mill", limit: 10 })).entries, []);
    });

  test("and it is not retried for ever", async () => {
    const index = createMemoryIndex();
    for (const text of ["", "{}", "nonsense", "null"])
      equal(await publish(index, { ...publication(), publish: text }), nonsense);
    for (const text of ["", "{}", "nonsense"])
      equal(await publish(index, { ...publication(), spec: text }), "done: its task has no action");
  });

  test("principal, time and replacement come from the owner, whatever the executor adds", async () => {
    const index = createMemoryIndex();
    const asked = publication();
    const lie = { ...(JSON.parse(asked.publish) as object), principal: "king", atMs: 999, first: true };
    await publish(index, { wanted: { digest: digest("c") }, atMs: 50 });
    equal(await publish(index, { ...asked, publish: JSON.stringify(lie) }), "done");
    const entry = await index.get(key);
    deepEqual([entry?.digest, entry?.principal, entry?.atMs], [digest("b"), "miller", 100]);
  });
});
