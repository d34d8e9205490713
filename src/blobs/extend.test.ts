import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { extend, extendPrompt } from "./extend.ts";
import { digestOf } from "./hashing.ts";
import { observed } from "./observed.ts";
import type { BlobStore } from "./store.ts";
import { lostBy } from "./testing/complete-store.ts";
import { put } from "./testing/exercise.ts";
import { breaker } from "./tiers/breaker.ts";
import { readThrough } from "./tiers/read-through.ts";
import { withShortCuts } from "./tiers/short-cut.ts";
import { HeldStore } from "./tiers/testing/held-store.ts";
import { brokenReads } from "./tiers/testing/broken-store.ts";
import { verifyingReads } from "./tiers/verifying.ts";

const clock = new ManualClock();
const bare = extend(createMemoryBlobs({ clock, sizeBytesMax: 1_000 }), { file: undefined, prompt: undefined });

type Decorator = {
  readonly name: string;
  readonly decorate: (inner: BlobStore) => BlobStore;
  /** What it removes on purpose; its own comment says why. */
  readonly removes?: readonly string[];
};

const allOfPrompt = ["prompt.has", "prompt.hasMany", "prompt.sizeOf", "prompt.bytes"];
const begin = () => ({ ended: () => {} });

const decorators: readonly Decorator[] = [
  { name: "extend", decorate: (inner) => extend(inner, {}) },
  { name: "extendPrompt", decorate: (inner) => extend(inner, { prompt: extendPrompt(inner.prompt, {}) }) },
  { name: "a removal", decorate: (inner) => extend(inner, { file: undefined }), removes: ["file"] },
  { name: "breaker", decorate: (inner) => breaker(inner, { clock }) },
  { name: "observed", decorate: (inner) => observed(inner, { begin }) },
  { name: "observed with loans", decorate: (inner) => observed(inner, { begin, lent: () => {} }) },
  {
    // Only the far store says what exists, so the near one's answers are not given; parts are for what is far.
    name: "readThrough over a near store",
    decorate: (near) => readThrough({ near, far: bare, whenDead: "refuse" }),
    removes: ["part", ...allOfPrompt],
  },
  {
    name: "readThrough before a far store",
    decorate: (far) => readThrough({ near: bare, far, whenDead: "refuse" }),
    removes: ["adopt", "path"], // files of this machine are the near store's
  },
  { name: "withShortCuts", decorate: (far) => withShortCuts({ clock, far, shortCuts: () => [] }) },
  { name: "verifyingReads", decorate: verifyingReads, removes: ["file", "path", "part"] },
  {
    name: "HeldStore",
    decorate: (inner) => new HeldStore().over(inner),
    removes: ["file", "adopt", "path", "part", ...allOfPrompt],
  },
  {
    name: "brokenReads",
    decorate: (inner) => brokenReads(inner, { random: new Random("seed"), mishaps: ["well"] }),
    removes: ["file", "adopt", "path", "part", ...allOfPrompt],
  },
];

for (const { name, decorate, removes = [] } of decorators)
  test(`${name} keeps every method of the store inside, except ${removes.join(", ") || "none"}`, () =>
    deepEqual(lostBy(decorate), removes));

test("a store whose methods use `this` can be extended", async () => {
  class Counting {
    calls = 0;
    async missing() {
      this.calls += 1;
      return [];
    }
    async *read() {}
    async write() {}
    async pin() {
      return { missing: [] };
    }
    async file() {
      this.calls += 1;
      return undefined;
    }
  }
  const inner = new Counting();
  const blobs = breaker(extend(inner, {}), { clock });
  await blobs.missing([]);
  await blobs.file?.("");
  equal(inner.calls, 2);
});

const noBytes = new Uint8Array();
const lending = (): BlobStore => ({
  ...bare,
  file: async () => ({ file: { readv: async (buffers) => ({ bytesRead: 0, buffers }) }, release: async () => {} }),
});

test("a store behind a dead tier lends a file only if the setting is serve-local", async () => {
  const far = { ...bare, isDead: true };
  const refusing = readThrough({ near: lending(), far, whenDead: "refuse" });
  await rejects(
    async () => await refusing.file?.(digestOf(noBytes)),
    (error) => isFault(error, "unavailable"),
  );
  const served: string[] = [];
  const serving = readThrough({ near: lending(), far, whenDead: "serve-local", served: (from) => served.push(from) });
  ok(await serving.file?.(digestOf(noBytes)));
  deepEqual(served, ["near"]);
});

test("verified reads give no bytes from memory, because those are unchecked", async () => {
  const inner = createMemoryBlobs({ clock, sizeBytesMax: 1_000 });
  const digest = await put(inner, "grain");
  ok(inner.prompt?.bytes(digest));
  equal(verifyingReads(inner).prompt?.bytes(digest), undefined);
});
