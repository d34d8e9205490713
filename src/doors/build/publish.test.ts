import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { ActionIndex } from "#blobs/action-index.ts";
import { createMemoryIndex } from "#blobs/memory-index.ts";
import { TrustRules, trustSpace } from "./trust-rules.ts";
import { buildPublisher, publicationText, type Publication } from "./publish.ts";

const key = { tenant: "mill", space: "ac/sha256", name: `${"a".repeat(64)}/1` };
const digest = (letter: string): string => `${letter.repeat(64)}/2`;
const publication: Publication = { ...key, digest: digest("b"), principal: "miller", atMs: 100 };
const nowMs = 1_000;
const result = { payload: "", digests: [] };
const about = { shard: 0, tenant: "mill", door: "build", job: 1, task: 1, generation: 1, result };
const publish = (index: ActionIndex, more: Partial<Publication> = {}) =>
  buildPublisher(index, () => nowMs)(
    { ...about, publish: publicationText({ ...publication, ...more }) },
    new AbortController().signal,
  );

describe("a result is published", () => {
  test("once, however often it is done", async () => {
    const index = createMemoryIndex();
    deepEqual([await publish(index), await publish(index)], ["done", "done"]);
    const entry = await index.get(key);
    deepEqual([entry?.digest, entry?.principal, entry?.version], [digest("b"), "miller", 1]);
  });

  test("E1: in the place of an older one, never of a younger", async () => {
    const index = createMemoryIndex();
    await publish(index);
    await publish(index, { digest: digest("c"), atMs: 200 });
    equal((await index.get(key))?.digest, digest("c"));
    equal(await publish(index), "done");
    equal((await index.get(key))?.digest, digest("c"), "a late publication changes nothing");
  });

  test("E1: one that was asked for when there was none replaces none that came first", async () => {
    const index = createMemoryIndex();
    await publish(index, { first: true });
    await publish(index, { first: true, digest: digest("c"), atMs: 200 });
    equal((await index.get(key))?.digest, digest("b"));
    await publish(index, { digest: digest("c"), atMs: 200 });
    equal((await index.get(key))?.digest, digest("c"), "who looked past the cache wants it replaced");
  });

  test("without a look first where there was nothing, and by what it is told where there is", async () => {
    const index = createMemoryIndex();
    let looks = 0;
    const counted: ActionIndex = { ...index, get: (at) => ((looks += 1), index.get(at)) };
    await publish(counted, { first: true });
    await publish(counted, { first: true, digest: digest("c"), atMs: 200 });
    deepEqual([looks, (await index.get(key))?.digest], [0, digest("b")]);
  });

  test("another time, when others keep writing at the same time", async () => {
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

  test("not at all, when it makes no sense: that is no reason to try for ever", async () => {
    const index = createMemoryIndex();
    const signal = new AbortController().signal;
    for (const text of ["", "{}", "nonsense", JSON.stringify({ ...publication, digest: "x" })])
      equal(await buildPublisher(index, () => nowMs)({ ...about, publish: text }, signal), "done");
    equal(await index.get(key), undefined);
  });

  test("as a result of an action only: whoever brings it cannot write what else is in the index", async () => {
    const index = createMemoryIndex();
    const rules = new TrustRules(index);
    const by = { principal: "ops", atMs: 1 };
    const id = await rules.revoke("mill", { kind: "principal", principal: "miller", untilMs: 500, why: "" }, by);
    for (const more of [
      { space: trustSpace, name: id },
      { space: "gradle", name: key.name },
      { name: "../../up" },
      { principal: 7 as unknown as string },
      { principal: "m".repeat(301) },
      { space: `${key.space}/${"s".repeat(300)}` },
      { digest: "x" },
      { first: "yes" as unknown as boolean },
      { atMs: Number.NaN },
      { atMs: -1 },
      { atMs: 1.5 },
    ])
      equal(await publish(index, more), "done");
    equal((await rules.list("mill")).length, 1);
    equal((await index.list({ tenant: "mill", limit: 10 })).entries.length, 2, "the rule and its head");
  });

  test("T1: with no later time than now, or no rule could take it back", async () => {
    const index = createMemoryIndex();
    await publish(index, { atMs: nowMs + 1e9 });
    equal((await index.get(key))?.atMs, nowMs);
  });
});
