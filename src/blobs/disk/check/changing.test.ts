/** Blobs that are evicted and written again while their files are checked: no reader takes that for damage. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { collect } from "#blobs/testing/exercise.ts";
import { diskRig, quietClock, type DiskRig } from "#blobs/disk/testing/disk.ts";

const rounds = 8;
const large = Buffer.alloc(300_000, "chaff ");
const digest = digestOf(large);
/** Files are hashed in one thread, in steps of 8 MiB: while this one is, the others wait for their turn. */
const slow = Buffer.alloc(30 * 1024 * 1024, "wheat ");

async function changingRig() {
  const time = new ManualClock(10_000_000);
  const clock = { ...quietClock, monotonicMs: () => time.monotonicMs(), wallMs: () => time.wallMs() };
  const reports: string[] = [];
  const report = (what: string): void => void reports.push(what);
  const rig = await diskRig({ clock, promisedMs: 0, report });
  const { blobs } = rig.store.forTenant("mill");
  await blobs.write(digestOf(slow), slow);
  await blobs.pin([digestOf(slow)], 1_000_000_000);
  return { rig, time, reports, blobs };
}

async function readSlow(blobs: BlobStore): Promise<void> {
  for await (const part of blobs.read(digestOf(slow), { offset: 0, length: 1 })) equal(part[0], slow[0]);
}

/** Its file changes its time, as by a backup that sets it: so it is checked before it is used again. */
function distrust(rig: DiskRig): void {
  const folder = join(rig.root, "files");
  for (const one of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (one.isFile()) utimesSync(join(one.parentPath, one.name), 1, 1);
}

const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i += 1) await new Promise(setImmediate);
};

test("a write whose copy is evicted while it is checked stores the blob again", async (t) => {
  const { rig, time, reports, blobs } = await changingRig();
  t.after(() => rig.dispose());
  for (let round = 0; round < rounds; round += 1) {
    await blobs.write(digest, large);
    distrust(rig);
    const reading = readSlow(blobs);
    await turns(8);
    let isAcknowledged = false;
    const writing = blobs.write(digest, large).then(() => (isAcknowledged = true));
    await turns(round);
    await time.advance(2_000);
    await rig.store.upkeep.evict(0);
    const wasEarly = isAcknowledged;
    await Promise.all([reading, writing]);
    if (wasEarly) await blobs.write(digest, large);
    ok("digests" in (await blobs.pin([digest], 1_000)), "there once it is acknowledged");
    ok((await collect(blobs.read(digest))).equals(large));
    await time.advance(2_000);
  }
  deepEqual(reports, []);
  equal(rig.store.upkeep.figures().damagedBlobs, 0);
});

test("a pinned blob is read although a check of its evicted copy has not ended", async (t) => {
  const { rig, time, reports, blobs } = await changingRig();
  t.after(() => rig.dispose());
  for (let round = 0; round < rounds; round += 1) {
    await blobs.write(digest, large);
    distrust(rig);
    const reading = readSlow(blobs);
    await turns(8);
    const early = collect(blobs.read(digest)).catch((error: unknown) => String(error));
    await turns(round);
    await time.advance(2_000);
    await rig.store.upkeep.evict(0);
    await blobs.write(digest, large);
    ok("digests" in (await blobs.pin([digest], 1_000)));
    distrust(rig);
    ok((await collect(blobs.read(digest))).equals(large));
    await reading;
    const got = await early;
    if (typeof got === "string") ok(got.includes("not-found"), got);
    else ok(got.equals(large));
    await time.advance(2_000);
  }
  deepEqual(reports, []);
  equal(rig.store.upkeep.figures().damagedBlobs, 0);
});
