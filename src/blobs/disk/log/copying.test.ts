/**
 * The janitor copies records to the end of the log in blocks, without touching the memory that holds readers' blobs.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, beforeEach, test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import type { BlobStore } from "#blobs/store.ts";
import { diskRig } from "#blobs/disk/testing/disk.ts";

const MiB = 1024 * 1024;
const real = { readSync: fs.readSync, write: fs.write, writeSync: fs.writeSync };
let reads = 0;
/** Longer writes than this fail with ENOSPC. */
let freeBytes = Number.POSITIVE_INFINITY;

type WriteDone = (error: Error | null, written: number) => void;

const noSpace = (): Error => Object.assign(new Error("no space left on device"), { code: "ENOSPC" });

beforeEach(() => {
  reads = 0;
  freeBytes = Number.POSITIVE_INFINITY;
  fs.readSync = ((...args: Parameters<typeof fs.readSync>) => {
    reads += 1;
    return real.readSync(...args);
  }) as typeof fs.readSync;
  fs.writeSync = ((...args: Parameters<typeof fs.writeSync>) => {
    if (Number(args[3]) > freeBytes) throw noSpace();
    return real.writeSync(...args);
  }) as typeof fs.writeSync;
  fs.write = ((fd: number, bytes: Buffer, at: number, length: number, position: number, done: WriteDone) => {
    if (length > freeBytes) done(noSpace(), 0);
    else real.write(fd, bytes, at, length, position, done);
  }) as typeof fs.write;
  syncBuiltinESMExports();
});
afterEach(() => {
  Object.assign(fs, real);
  syncBuiltinESMExports();
});

/** `count` blobs of 1,000 bytes, with one to be evicted after each. */
async function interleaved(blobs: BlobStore, count: number) {
  const stay: Digest[] = [];
  const go: Digest[] = [];
  for (let i = 0; i < count; i += 1) {
    const bytes = Buffer.alloc(1_000, `${i} `);
    await blobs.write(digestOf(bytes), bytes);
    (i % 2 === 0 ? stay : go).push(digestOf(bytes));
  }
  return { stay, go };
}

async function allRight(blobs: BlobStore, digests: readonly Digest[]): Promise<void> {
  for (const digest of digests) equal(digestOf(await wholeBlob(blobs, digest)), digest);
}

test("compaction leaves blobs in memory that readers use", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, promisedMs: 1_000, memoryBytesMax: 4 * MiB, segmentBytes: MiB });
  const { blobs } = rig.store.forTenant("mill");
  const { stay, go } = await interleaved(blobs, 12_000);
  await blobs.pin(stay, 10_000_000);
  const asked = stay.slice(0, 500);
  await allRight(blobs, asked);
  await clock.advance(100_000);
  const before = (await rig.store.upkeep.stat()).usedBytes;
  await rig.store.upkeep.evict(0);
  const after = (await rig.store.upkeep.stat()).usedBytes;
  ok(after < before * 0.7, `${before} -> ${after}: most segments were copied`);
  deepEqual(await blobs.missing(go), go);
  reads = 0;
  await allRight(blobs, asked);
  equal(reads, 0, "no blob had to be read from disk");
  await allRight(blobs, stay);
  await rig.reopen();
  await allRight(rig.store.forTenant("mill").blobs, stay);
  await rig.dispose();
});

test("a disk without space for copies loses nothing, and is compacted once it has space", async () => {
  const clock = new ManualClock(10_000_000);
  const told: string[] = [];
  const report = (what: string): number => told.push(what);
  const rig = await diskRig({ clock, promisedMs: 1_000, segmentBytes: MiB / 4, report });
  const { blobs } = rig.store.forTenant("mill");
  const { stay, go } = await interleaved(blobs, 3_000);
  await blobs.pin(stay, 10_000_000);
  await clock.advance(100_000);
  freeBytes = 16 * 1024; // records of evictions are shorter
  const { usedBytes } = await rig.store.upkeep.evict(0);
  deepEqual(told, ["a segment could not be compacted"]);
  freeBytes = Number.POSITIVE_INFINITY;
  await allRight(blobs, stay);
  deepEqual(await blobs.missing(go), go);
  ok((await rig.store.upkeep.evict(0)).usedBytes < usedBytes * 0.6);
  await allRight(blobs, stay);
  await rig.reopen();
  await allRight(rig.store.forTenant("mill").blobs, stay);
  await rig.dispose();
});
