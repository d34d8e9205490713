/** Another Millrace as the tier behind a store: the suite of all stores, and the tier slow, gone, or corrupt. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { Fault, isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { bytes, exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { withParts } from "#blobs/tiers/ranges/part-reads.ts";
import { readThrough } from "#blobs/tiers/read-through.ts";
import { reapiBlobs } from "#blobs/tiers/reapi/reapi.ts";
import { memorySegments } from "#blobs/tiers/streams/memory-segments.ts";
import { gone, HeldStore } from "#blobs/tiers/testing/held-store.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { startBuildEdge } from "#app/testing/build-edge.ts";
import { systemClock as clock } from "#door/system-clock.ts";

const MiB = 1024 * 1024;

type Tier = ReturnType<typeof reapiBlobs>;
type Served = AsyncDisposable & { readonly blobs: Tier; readonly inner: BlobStore; stop(): Promise<void> };

async function served(held = new HeldStore(), callMs = 20_000): Promise<Served> {
  held.partBytes = 64 * 1024;
  const store = createMemoryStore({ clock, sizeBytesMax: 64 * MiB });
  const inner = store.forTenant("default");
  const watched: Store = { ...store, forTenant: () => ({ ...inner, blobs: held.over(inner.blobs) }) };
  const edge = await startBuildEdge(watched);
  const port = edge.ports[0] ?? 0;
  const client = new GrpcClient({
    clock,
    authority: `127.0.0.1:${port}`,
    connect: () => connectH2({ host: "127.0.0.1", port, clock }),
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= edge.close());
  const retry = { attemptsMax: 3, delayMs: 1, delayMsMax: 5 };
  return {
    blobs: reapiBlobs({ clock, random: new Random(1), client, instance: "", callMs, retry }),
    inner: inner.blobs,
    stop,
    async [Symbol.asyncDispose]() {
      client.close();
      await stop();
    },
  };
}

exerciseBlobs("a REAPI server as a tier", async () => {
  const { blobs, ...rest } = await served();
  return { blobs, dispose: async () => await rest[Symbol.asyncDispose]() };
});

describe("a REAPI server as a tier", () => {
  test("large blobs are sent and received in streams, by every digest function", async () => {
    await using tier = await served();
    const large = randomBytes(3 * MiB);
    for (const fn of ["sha256", "blake3", "sha1", "sha384", "sha512"] as const) {
      const digest = digestOf(large, fn);
      deepEqual(await tier.blobs.missing([digest]), [digest]);
      await tier.blobs.write(digest, large);
      deepEqual(await tier.blobs.missing([digest]), []);
      deepEqual(await tier.inner.missing([digest]), []);
      const got: Uint8Array[] = [];
      for await (const part of tier.blobs.read(digest, { offset: 5 })) got.push(Uint8Array.from(part));
      ok(Buffer.concat(got).equals(large.subarray(5)));
    }
  });

  test("a thousand small blobs are written and read in a few calls", async () => {
    await using tier = await served();
    const values = Array.from({ length: 1_000 }, (_, i) => `value ${i}`);
    const digests = await Promise.all(values.map((value) => put(tier.blobs, value)));
    deepEqual(await tier.blobs.missing(digests), []);
    deepEqual(await Promise.all(digests.map((digest) => text(tier.blobs.read(digest)))), values);
  });

  test("a server that fails for a moment is retried, one that fails for ever is unavailable", async () => {
    const held = new HeldStore();
    await using tier = await served(held);
    const digest = await put(tier.blobs, "here");
    held.fails = gone();
    await rejects(tier.blobs.missing([digest]), (e) => isFault(e, "unavailable"));
    await rejects(put(tier.blobs, "more"), (e) => isFault(e, "unavailable"));
    const large = randomBytes(MiB);
    await rejects(tier.blobs.write(digestOf(large), large), (e) => isFault(e, "unavailable"));
    held.fails = undefined;
    deepEqual(await tier.blobs.missing([digest]), []);
  });

  test("a server that is gone is unavailable, and available when it is back", async () => {
    await using tier = await served();
    const digest = await put(tier.blobs, "here");
    await tier.stop();
    await rejects(tier.blobs.missing([digest]), (e) => isFault(e, "unavailable"));
    await rejects(text(tier.blobs.read(digest)), (e) => isFault(e, "unavailable"));
    await rejects(put(tier.blobs, "x"), (e) => isFault(e, "unavailable"));
  });

  test("a silent server is given up", async () => {
    const held = new HeldStore();
    await using tier = await served(held, 300);
    const large = randomBytes(MiB);
    await tier.inner.write(digestOf(large), large);
    held.partsLeft = 0;
    await rejects(text(tier.blobs.read(digestOf(large))), (e) => isFault(e, "unavailable"));
    held.letGo(Infinity);
  });

  test("B1: a server that sends wrong bytes is detected, by readers of a store above it too", async () => {
    const held = new HeldStore();
    await using tier = await served(held);
    const large = randomBytes(MiB);
    const [small, big] = [digestOf(bytes("small")), digestOf(large)];
    await tier.inner.write(small, bytes("small"));
    await tier.inner.write(big, large);
    held.tamper = (part) => part.map((byte) => byte ^ 1);
    const above = readThrough({
      near: createMemoryBlobs({ clock, sizeBytesMax: 8 * MiB }),
      far: tier.blobs,
      whenDead: "refuse",
    });
    for (const blobs of [tier.blobs, above])
      for (const digest of [small, big]) await rejects(text(blobs.read(digest)), (e) => isFault(e, "corrupt"));
    held.tamper = (part) => part;
    equal(await text(above.read(small)), "small");
  });
});

describe("parts of large blobs of a REAPI server (ADR 0286)", () => {
  const large = randomBytes(10 * MiB);
  const block = 64 * 1024;

  /** With block sums, as a node has it; counts the bytes that the server sends. */
  async function parted(held = new HeldStore(), fn: "sha256" | "blake3" = "sha256") {
    const tier = await served(held);
    const digest = digestOf(large, fn);
    const blobs = withParts(tier.blobs, tier.blobs.raw, memorySegments(MiB));
    await blobs.write(digest, large);
    const sent = { bytes: 0 };
    held.tamper = (bytes) => {
      sent.bytes += bytes.length;
      return bytes;
    };
    held.calls.length = 0;
    const part = async (offset: number, length: number) => await blobs.part?.(digest, { offset, length });
    return { ...tier, tier, held, blobs, digest, part, sent, [Symbol.asyncDispose]: () => tier[Symbol.asyncDispose]() };
  }

  for (const fn of ["sha256", "blake3"] as const)
    test(`${fn}: a part is asked for by offset and length, and the server sends its blocks and no more`, async () => {
      await using far = await parted(undefined, fn);
      for (const [offset, length] of [
        [0, 1],
        [5 * MiB - 3, 100],
        [10 * MiB - 10, 10],
        [block, block],
      ] as const) {
        far.sent.bytes = 0;
        const got = await far.part(offset, length);
        ok(got && Buffer.from(got).equals(large.subarray(offset, offset + length)), `${offset}+${length}`);
        ok(far.sent.bytes <= 3 * block, `${far.sent.bytes} bytes for ${length}`);
      }
    });

  test("a stream that breaks in a part goes on where it broke", async () => {
    const held = new HeldStore();
    await using far = await parted(held);
    let breaks = 0;
    const count = held.tamper;
    held.tamper = (bytes, at) => {
      breaks += 1;
      if (breaks === 3) throw gone();
      return count(bytes, at);
    };
    const got = await far.part(MiB, MiB);
    ok(got && Buffer.from(got).equals(large.subarray(MiB, 2 * MiB)));
    ok(far.sent.bytes < 2 * MiB, `${far.sent.bytes} bytes`);
  });

  test("wrong bytes, too few, or a blob that is gone are no part; the whole blob says what is wrong", async () => {
    const held = new HeldStore();
    await using far = await parted(held);
    held.tamper = (bytes) => bytes.map((byte) => byte ^ 1);
    equal(await far.part(MiB, 100), undefined);
    await rejects(text(far.blobs.read(far.digest)), (e) => isFault(e, "corrupt"));
    held.tamper = (bytes) => bytes.subarray(0, bytes.length - 1);
    equal(await far.part(MiB, 100), undefined);
    held.tamper = (bytes) => bytes;
    held.fails = new Fault("not-found", "read blob", {});
    equal(await far.part(MiB, 100), undefined);
  });

  test("of a server that refuses ranges the whole blob is read", async () => {
    const held = new HeldStore();
    await using far = await parted(held);
    held.fails = new Fault("invalid", "read blob", { why: "no offsets here" });
    equal(await far.part(MiB, 100), undefined);
    held.fails = undefined;
    ok(Buffer.from((await far.part(MiB, 100)) ?? []).equals(large.subarray(MiB, MiB + 100)));
  });

  test("a node's cache in front of it reads a range by itself", async () => {
    await using far = await parted(new HeldStore());
    const near = createMemoryBlobs({ clock, sizeBytesMax: 64 * MiB });
    const above = readThrough({ near, far: far.blobs, whenDead: "refuse" });
    const got: Uint8Array[] = [];
    for await (const part of above.read(far.digest, { offset: 9 * MiB, length: 1_000 }))
      got.push(Uint8Array.from(part));
    ok(Buffer.concat(got).equals(large.subarray(9 * MiB, 9 * MiB + 1_000)));
    ok(far.sent.bytes <= 3 * block, `${far.sent.bytes} bytes`);
    deepEqual(await near.missing([far.digest]), [far.digest]);
  });
});
