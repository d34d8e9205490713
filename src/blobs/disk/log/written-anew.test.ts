/**
 * A blob that is evicted while it is written again: its writer was told that the blob is there, so it must be (B2, B4).
 * The test controls when the disk syncs, so that one copy can be in progress while another is evicted.
 */
import { deepEqual, ok } from "node:assert/strict";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, beforeEach, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { put } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import { until } from "#testing/until.ts";
import { diskRig, type DiskRig } from "#blobs/disk/testing/disk.ts";

/** Syncs that wait until the test releases them; undefined: none are held back. */
let held: (() => void)[] | undefined;
const { fdatasync } = fs;

beforeEach(() => {
  held = undefined;
  fs.fdatasync = ((fd: number, done: (error: Error | null) => void) =>
    held ? held.push(() => fdatasync(fd, done)) : fdatasync(fd, done)) as typeof fs.fdatasync;
  syncBuiltinESMExports();
});
afterEach(() => {
  fs.fdatasync = fdatasync;
  syncBuiltinESMExports();
});

function letGo(): void {
  for (const one of held?.splice(0) ?? []) one();
}

const turns = async (): Promise<void> => {
  for (let i = 0; i < 300; i += 1) await new Promise(setImmediate);
};

const value = Buffer.alloc(5_000, "X");
const digest = digestOf(value);
const pinMs = 3_600_000;

/** Pins the blob once it is written, and finds it after the eviction and after a restart. */
async function staysWhenPinned(rig: DiskRig, written: Promise<void>, evicting: Promise<unknown>): Promise<void> {
  const { blobs } = rig.store.forTenant("mill");
  const pinned = written.then(() => blobs.pin([digest], pinMs));
  letGo();
  held = undefined;
  ok("pinnedForMs" in (await pinned));
  await evicting;
  deepEqual(await blobs.missing([digest]), []);
  await rig.reopen();
  deepEqual(await rig.store.forTenant("mill").blobs.missing([digest]), []);
}

test("a blob written twice at once and evicted in between: the second copy stays", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, promisedMs: 0, sync: "synced" });
  const { blobs } = rig.store.forTenant("mill");
  try {
    await put(blobs, "so that the tenant has a number");
    held = [];
    const first = blobs.write(digest, value);
    await until("the first copy is being synced", () => held?.length === 1);
    const second = blobs.write(digest, value);
    letGo();
    await first;
    await until("the second copy is being synced", () => held?.length === 1);
    await clock.advance(120_000);
    const evicting = rig.store.upkeep.evict(0);
    await turns();
    await staysWhenPinned(rig, second, evicting);
  } finally {
    held = undefined;
    await rig.dispose();
  }
});

test("a blob written again while the record of its eviction is copied: it stays", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, promisedMs: 0, sync: "synced", segmentBytes: 64 * 1024 });
  const { blobs } = rig.store.forTenant("mill");
  try {
    await put(blobs, "so that the tenant has a number");
    await blobs.write(digest, value);
    await clock.advance(120_000);
    await rig.store.upkeep.evict(0);
    deepEqual(await blobs.missing([digest]), [digest]);
    // Fills the segment, so that the one with the record of the eviction can be compacted.
    for (let i = 0; i < 20; i += 1) await put(blobs, `${i} `.repeat(2_000));
    const { usedBytes } = await rig.store.upkeep.stat();
    held = [];
    const written = blobs.write(digest, value);
    await until("the new copy is being synced", () => held?.length === 1);
    const evicting = rig.store.upkeep.evict(usedBytes - 1); // dead records are enough
    await turns();
    await staysWhenPinned(rig, written, evicting);
  } finally {
    held = undefined;
    await rig.dispose();
  }
});
