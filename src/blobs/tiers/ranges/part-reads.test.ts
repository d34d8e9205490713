/** Small parts of large blobs of a tier: only they are read, and none is wrong. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtempDisposable, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { BlobStore } from "#blobs/store.ts";
import { collect } from "#blobs/testing/exercise.ts";
import { readThrough } from "#blobs/tiers/read-through.ts";
import { s3Blobs } from "#blobs/tiers/s3/s3.ts";
import { openSharedDirectory } from "#blobs/tiers/shared-directory.ts";
import { memorySegments } from "#blobs/tiers/streams/memory-segments.ts";
import { littleClient, LittleS3 } from "#blobs/tiers/testing/little-s3.ts";
import { BlockSummer, BlockSums } from "./block-sums.ts";
import { withParts, type RawPart } from "./part-reads.ts";

const MiB = 1024 * 1024;
const clock = new ManualClock();
const large = randomBytes(10 * MiB);
const digest = digestOf(large);

test("block sums know every block, whatever the pieces, and no other bytes", () => {
  const bytes = large.subarray(0, 300_001);
  fc.assert(
    fc.property(
      fc.nat(300_000),
      fc.nat(100_000),
      fc.nat(7),
      fc.integer({ min: 1, max: 90_000 }),
      (at, n, bit, piece) => {
        const summer = new BlockSummer(bytes.length);
        for (let from = 0; from < bytes.length; from += piece) summer.add(bytes.subarray(from, from + piece));
        const sums = BlockSums.decode(summer.sums().encode(), bytes.length);
        const span = sums?.around(at, n) ?? { from: 0, to: 0 };
        const part = Buffer.from(bytes.subarray(span.from, span.to));
        ok(span.from <= at && span.to >= Math.min(at + n, bytes.length) && sums?.areRight(span, part));
        if (part.length === 0) return;
        part[at % part.length] = (part[at % part.length] ?? 0) ^ (1 << bit);
        ok(!sums?.areRight(span, part));
      },
    ),
    { numRuns: 50 },
  );
  const encoded = new BlockSummer(0).sums().encode();
  equal(BlockSums.decode(encoded.subarray(1), 0), undefined);
  equal(BlockSums.decode(encoded, 1), undefined);
});

/** Counts what leaves the tier. */
function counted(tier: BlobStore & { readonly raw: RawPart }) {
  const read = { whole: 0, rawBytes: 0 };
  const raw: RawPart = async function* (...asked) {
    for await (const part of tier.raw(...asked)) {
      read.rawBytes += part.length;
      yield part;
    }
  };
  const far: BlobStore = { ...tier, read: (...asked) => ((read.whole += 1), tier.read(...asked)) };
  return { read, raw, far };
}

const kinds = [
  { name: "a shared folder", open: async (folder: string) => await openSharedDirectory(folder, clock) },
  {
    name: "a bucket",
    open: async (_: string, undo: AsyncDisposableStack) => {
      const s3 = undo.use(await LittleS3.start());
      return s3Blobs({ clock, client: undo.use(littleClient(s3)), prefix: "p/", partBytes: 5 * MiB });
    },
  },
] as const;

for (const { name, open } of kinds)
  test(`a small part of a large blob of ${name} is read by itself; more of it fetches the blob`, async () => {
    await using undo = new AsyncDisposableStack();
    const folder = undo.use(await mkdtempDisposable(join(tmpdir(), "millrace-parts-"))).path;
    const { read, raw, far } = counted(await open(folder, undo));
    const objects = memorySegments(MiB);
    await withParts(far, raw, objects).write(digest, large);
    // Another node, which has nothing.
    const near = createMemoryBlobs({ clock, sizeBytesMax: 16 * MiB });
    const blobs = readThrough({ near, far: withParts(far, raw, objects), whenDead: "refuse" });
    ok(
      (await collect(blobs.read(digest, { offset: 3 * MiB + 7, length: 100_000 }))).equals(
        large.subarray(3 * MiB + 7, 3 * MiB + 100_007),
      ),
    );
    ok((await collect(blobs.read(digest, { offset: large.length - 10, length: 1_000 }))).equals(large.subarray(-10)));
    equal(read.whole, 0);
    ok(read.rawBytes < 400_000, String(read.rawBytes));
    ok((await collect(blobs.read(digest, { offset: 5, length: 2 * MiB }))).equals(large.subarray(5, 2 * MiB + 5)));
    deepEqual([read.whole, (await near.missing([digest])).length], [1, 0]);
  });

test("a damaged blob of the tier gives no part and no wrong byte, and says that it is damaged", async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), "millrace-parts-"));
  const { raw, far } = counted(await openSharedDirectory(folder.path, clock));
  const tier = withParts(far, raw, memorySegments(MiB));
  await tier.write(digest, large);
  const files = await readdir(join(folder.path, "blobs"), { recursive: true });
  const file = join(folder.path, "blobs", files.find((one) => one.endsWith(`-${large.length}`)) ?? "");
  const damaged = await readFile(file);
  damaged[4 * MiB] = (damaged[4 * MiB] ?? 0) ^ 1;
  await writeFile(file, damaged);
  const blobs = readThrough({ near: createMemoryBlobs({ clock, sizeBytesMax: 1 }), far: tier, whenDead: "refuse" });
  await rejects(
    async () => await collect(blobs.read(digest, { offset: 4 * MiB, length: 1_000 })),
    (error) => isFault(error, "corrupt"),
  );
  equal(await tier.part?.(digest, { offset: 4 * MiB, length: 1_000 }), undefined);
});

test("a blob without block sums is read as a whole, and has them then", async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), "millrace-parts-"));
  await mkdir(join(folder.path, "old"));
  const { read, raw, far } = counted(await openSharedDirectory(join(folder.path, "old"), clock));
  await far.write(digest, large);
  const objects = memorySegments(MiB);
  const tier = withParts(far, raw, objects);
  const range = { offset: 1_000, length: 1_000 };
  equal(await tier.part?.(digest, range), undefined);
  await collect(tier.read(digest));
  const other = withParts(far, raw, objects);
  ok(Buffer.from((await other.part?.(digest, range)) ?? []).equals(large.subarray(1_000, 2_000)));
  equal(read.whole, 1);
});
