/**
 * A near store over a far one: one fetch for many readers, and correct answers if the far one is slow, gone or lying.
 */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { bytes, exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { exerciseUploads } from "#blobs/testing/uploads.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { BlobStore } from "#blobs/store.ts";
import { breaker } from "./breaker.ts";
import { readThrough, type ReadThroughOptions } from "./read-through.ts";
import { gone, HeldStore } from "./testing/held-store.ts";
import { tieredStore } from "./tiered-store.ts";
import { verifyingReads } from "./verifying.ts";

const MiB = 1024 * 1024;
const memory = (sizeBytesMax = 16 * MiB) => createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax });

function rig(options: Partial<ReadThroughOptions> = {}) {
  const near = memory();
  const farInner = memory();
  const held = new HeldStore();
  const far = held.over(farInner);
  return { near, farInner, held, far, blobs: readThrough({ near, far, whenDead: "serve-local", ...options }) };
}

async function all(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const got: Uint8Array[] = [];
  for await (const part of parts) got.push(Uint8Array.from(part));
  return Buffer.concat(got);
}

exerciseBlobs("a cache over a tier", async () => ({ blobs: rig().blobs }));

exerciseBlobs("a cache over a tier, without space of its own", async () => ({
  blobs: readThrough({ near: memory(0), far: memory(), whenDead: "refuse" }),
}));

exerciseUploads("a tiered store", async () => {
  const far = memory();
  const store = tieredStore({
    near: createMemoryStore({ clock: new ManualClock(), sizeBytesMax: 16 * MiB }),
    far: () => far,
    whenDead: "refuse",
  });
  return store.forTenant("a");
});

test("a hundred readers cause one fetch, and get the first bytes before the last have arrived", async () => {
  const { blobs, farInner, held, near } = rig();
  const large = randomBytes(10_000);
  const digest = digestOf(large);
  await farInner.write(digest, large);
  held.partsLeft = 3;
  const started: Promise<unknown>[] = [];
  const reading = Array.from({ length: 100 }, async () => {
    const got: Uint8Array[] = [];
    const first = Promise.withResolvers<void>();
    started.push(first.promise);
    for await (const part of blobs.read(digest)) {
      got.push(Uint8Array.from(part));
      first.resolve();
    }
    return Buffer.concat(got);
  });
  await Promise.all(started);
  equal(held.calls.filter((call) => call === "read").length, 1);
  held.letGo(Infinity);
  for (const got of await Promise.all(reading)) ok(got.equals(large));
  equal(held.calls.filter((call) => call === "read").length, 1);
  deepEqual(await near.missing([digest]), []);
  ok((await all(blobs.read(digest))).equals(large));
  equal(held.calls.filter((call) => call === "read").length, 1, "now from the near store");
});

test("a reader that comes while the complete blob is being stored causes no second fetch", async () => {
  const [inner, farInner] = [memory(), memory()];
  const stored = Promise.withResolvers<void>();
  const near: BlobStore = {
    ...inner,
    async write(digest, source) {
      const whole = await all(source as AsyncIterable<Uint8Array>);
      await stored.promise;
      await inner.write(digest, whole);
    },
  };
  let fetches = 0;
  const far: BlobStore = { ...farInner, read: (...asked) => ((fetches += 1), farInner.read(...asked)) };
  const blobs = readThrough({ near, far, whenDead: "refuse" });
  const large = randomBytes(10_000);
  const digest = digestOf(large);
  await farInner.write(digest, large);
  ok((await all(blobs.read(digest))).equals(large));
  const second = all(blobs.read(digest, { offset: 5_000 }));
  setImmediate(stored.resolve);
  ok((await second).equals(large.subarray(5_000)));
  equal(fetches, 1);
});

test("Q2: a reader that leaves does not stop the others; when the last one leaves, the fetch ends", async () => {
  const { blobs, farInner, held } = rig();
  const large = randomBytes(10_000);
  const digest = digestOf(large);
  await farInner.write(digest, large);
  held.partsLeft = 3;
  const staying = all(blobs.read(digest));
  for await (const _ of blobs.read(digest)) break;
  held.letGo(Infinity);
  ok((await staying).equals(large));

  const other = rig();
  await other.farInner.write(digest, large);
  other.held.partsLeft = 3;
  for await (const _ of other.blobs.read(digest)) break;
  other.held.letGo(1);
  equal(other.held.partsLeft <= 1, true);
  other.held.letGo(Infinity);
  ok((await all(other.blobs.read(digest))).equals(large), "a later reader has a fetch of its own");
  equal(other.held.calls.filter((call) => call === "read").length, 2);
});

test("a slow reader does not slow the others: it continues from the copy", async () => {
  const { blobs, farInner, near } = rig({ windowBytesMax: 2_500 });
  const large = randomBytes(20_000);
  const digest = digestOf(large);
  await farInner.write(digest, large);
  const slow = blobs.read(digest)[Symbol.asyncIterator]();
  const got = [Uint8Array.from((await slow.next()).value as Uint8Array)];
  ok((await all(blobs.read(digest))).equals(large), "the others have the whole blob");
  await until("the near store has the copy", async () => (await near.missing([digest])).length === 0);
  for (let next = await slow.next(); next.done !== true; next = await slow.next())
    got.push(Uint8Array.from(next.value));
  ok(Buffer.concat(got).equals(large));
});

test("ranges of a far blob come from one fetch", async () => {
  const { blobs, farInner, held } = rig();
  const large = randomBytes(10_000);
  const digest = digestOf(large);
  await farInner.write(digest, large);
  const ranges = [{ offset: 0 }, { offset: 9_999 }, { offset: 2_500, length: 3_000 }, { offset: 10_000 }];
  const got = await Promise.all(ranges.map((range) => all(blobs.read(digest, range))));
  deepEqual(
    got.map((part) => part.toString("hex")),
    [large, large.subarray(9_999), large.subarray(2_500, 5_500), Buffer.alloc(0)].map((part) => part.toString("hex")),
  );
  equal(held.calls.filter((call) => call === "read").length, 1);
});

test("B1: no reader gets the last byte from a lying tier, and nothing is stored", async () => {
  const { farInner, held, far, near } = rig();
  const blobs = readThrough({ near, far: verifyingReads(far), whenDead: "serve-local" });
  const large = randomBytes(5_500);
  const digest = digestOf(large);
  await farInner.write(digest, large);
  for (const tamper of [
    (part: Uint8Array, at: number) => (at === 3_000 ? part.map((byte) => byte ^ 1) : part),
    (part: Uint8Array, at: number) => (at === 5_000 ? part.subarray(1) : part),
    (part: Uint8Array, at: number) => (at === 5_000 ? Buffer.concat([part, part]) : part),
  ]) {
    held.tamper = tamper;
    const readers = Array.from({ length: 5 }, async (_, i) => {
      let gotBytes = 0;
      const range = i === 4 ? { offset: 0, length: 2_000 } : undefined;
      const reading = async (): Promise<void> => {
        for await (const part of blobs.read(digest, range)) gotBytes += part.length;
      };
      await rejects(reading(), (e) => isFault(e, "corrupt"));
      ok(gotBytes < (range?.length ?? large.length));
    });
    await Promise.all(readers);
    deepEqual(await near.missing([digest]), [digest]);
  }
  held.tamper = (part) => part;
  ok((await all(blobs.read(digest))).equals(large));
});

test("a write is acknowledged only when the tier has it", async () => {
  const { blobs, farInner, held } = rig();
  const digest = await put(blobs, "grain");
  deepEqual(await farInner.missing([digest]), []);
  held.fails = gone();
  await rejects(put(blobs, "more"), (e) => isFault(e, "unavailable"));
  async function* streamed() {
    yield bytes("streamed");
  }
  await rejects(blobs.write(digestOf(bytes("streamed")), streamed()), (e) => isFault(e, "unavailable"));
  let taken = 0;
  async function* endless() {
    for (;;) yield new Uint8Array(1_000).fill((taken += 1));
  }
  await rejects(blobs.write(digestOf(bytes("endless")), endless()), (e) => isFault(e));
  ok(taken < 5, "the source is not read further once the tier has failed");
  async function* broken() {
    yield bytes("str");
    throw new Error("the client has gone");
  }
  held.fails = undefined;
  await rejects(blobs.write(digestOf(bytes("streamed")), broken()), /the client has gone/);
  deepEqual(await farInner.missing([digestOf(bytes("streamed"))]), [digestOf(bytes("streamed"))]);
  await blobs.write(digestOf(bytes("streamed")), streamed());
  deepEqual(await farInner.missing([digestOf(bytes("streamed"))]), []);
});

test("B3: a dead tier's answers are never guessed; near blobs are served or refused as configured", async () => {
  for (const whenDead of ["serve-local", "refuse"] as const) {
    const clock = new ManualClock();
    const held = new HeldStore();
    const far = breaker(held.over(memory()), { clock, failuresMax: 3, probeMs: 1_000 });
    const blobs = readThrough({ near: memory(), far, whenDead });
    const here = await put(blobs, "here");
    held.fails = gone();
    for (let i = 0; i < 5; i += 1) await rejects(blobs.missing([here]), (e) => isFault(e, "unavailable"));
    equal(held.calls.filter((call) => call === "missing").length, 3, "then the tier is not asked for a while");
    await rejects(blobs.pin([here], 5), (e) => isFault(e, "unavailable"));
    await rejects(put(blobs, "new"), (e) => isFault(e, "unavailable"));
    await rejects(text(blobs.read(digestOf(bytes("elsewhere")))), (e) => isFault(e, "unavailable"));
    if (whenDead === "serve-local") equal(await text(blobs.read(here)), "here");
    else await rejects(text(blobs.read(here)), (e) => isFault(e, "unavailable"));
    held.fails = undefined;
    await clock.advance(1_000);
    deepEqual(await blobs.missing([here]), []);
    equal(await text(blobs.read(here)), "here");
  }
});

test("a copy that cannot be read here is read from the tier", async () => {
  const { near, farInner, far } = rig();
  const digest = await put(farInner, "sound");
  const rotten = new HeldStore();
  const blobs = readThrough({ near: rotten.over(near), far, whenDead: "refuse" });
  await put(near, "sound");
  rotten.fails = gone();
  equal(await text(blobs.read(digest)), "sound");
});

test("B5: tenants have their own parts of the tier", async () => {
  const parts = new Map<string, ReturnType<typeof memory>>();
  const partOf = (tenant: string) => {
    let part = parts.get(tenant);
    if (!part) parts.set(tenant, (part = memory()));
    return part;
  };
  const near = createMemoryStore({ clock: new ManualClock(), sizeBytesMax: MiB });
  const store = tieredStore({ near, far: partOf, whenDead: "refuse" });
  const digest = await put(store.forTenant("a").blobs, "private");
  deepEqual(await store.forTenant("b").blobs.missing([digest]), [digest]);
  await rejects(text(store.forTenant("b").blobs.read(digest)), (e) => isFault(e, "not-found"));
});

test("an upload is complete when the tier has the blob, and pushes it there if it does not", async () => {
  const held = new HeldStore();
  const farInner = memory();
  const store = tieredStore({
    near: createMemoryStore({ clock: new ManualClock(), sizeBytesMax: MiB }),
    far: () => held.over(farInner),
    whenDead: "refuse",
  });
  const { uploads } = store.forTenant("a");
  const key = { uuid: "5d1f2f0e-0000-4000-8000-000000000001", digest: digestOf(bytes("parts")) };
  const upload = await uploads.open(key, 0);
  await upload.append(bytes("parts"));
  held.fails = gone();
  await rejects(upload.finish(), (e) => isFault(e, "unavailable"));
  await rejects(uploads.committed(key), (e) => isFault(e, "unavailable"));
  held.fails = undefined;
  deepEqual(await uploads.committed(key), { sizeBytes: 5, complete: true });
  deepEqual(await farInner.missing([key.digest]), []);
});
