/** Files that the store takes in by their name, and files that it lends by theirs. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { collect } from "#blobs/testing/exercise.ts";
import { readThrough } from "#blobs/tiers/read-through.ts";
import { diskRig } from "./testing/disk.ts";

const large = Buffer.alloc(300_000, "flour ");
const digest = digestOf(large);

async function withFinished() {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, promisedMs: 1_000, sync: "synced" });
  const { blobs } = rig.store.forTenant("mill");
  mkdirSync(join(rig.root, "work"));
  const path = join(rig.root, "work", "finished");
  writeFileSync(path, large);
  return { rig, clock, blobs, path };
}

test("an adopted file is the blob: the same inode, without a copy, and there after a restart", async () => {
  const { rig, blobs, path } = await withFinished();
  const { ino } = statSync(path);
  const before = (await rig.store.upkeep.stat()).usedBytes;
  equal(await blobs.adopt?.(digest, path), true);
  const lent = await blobs.path?.(digest);
  equal(statSync(lent?.path ?? "").ino, ino);
  await lent?.release();
  deepEqual(readdirSync(join(rig.root, "uploads")), []);
  const grownBytes = (await rig.store.upkeep.stat()).usedBytes - before;
  ok(grownBytes >= large.length && grownBytes < large.length + 10_000, "counted once");
  await rig.reopen();
  ok((await collect(rig.store.forTenant("mill").blobs.read(digest))).equals(large));
  deepEqual(await rig.store.forTenant("other").blobs.missing([digest]), [digest], "B5");
  await rig.dispose();
});

test("a file with a second name, a link and a small file are not adopted, and stay", async () => {
  const { rig, blobs, path } = await withFinished();
  const names = ["twin", "link", "small"].map((name) => join(rig.root, "work", name));
  const [twin = "", link = "", small = ""] = names;
  linkSync(path, twin);
  symlinkSync(path, link);
  writeFileSync(small, "grain");
  for (const one of [path, twin, link]) equal(await blobs.adopt?.(digest, one), false);
  equal(await blobs.adopt?.(digestOf(Buffer.from("grain")), small), false);
  deepEqual(readdirSync(join(rig.root, "work")).length, 4);
  await rig.dispose();
});

test("B5: who adopts a file under the name of another tenant's blob must have its bytes", async () => {
  const { rig, blobs, path } = await withFinished();
  await blobs.adopt?.(digest, path);
  const other = rig.store.forTenant("other").blobs;
  writeFileSync(path, Buffer.alloc(300_000, "chaff "));
  await rejects(
    async () => await other.adopt?.(digest, path),
    (error) => isFault(error, "invalid"),
  );
  deepEqual(await other.missing([digest]), [digest]);
  ok(existsSync(path), "what was refused can be looked at");
  writeFileSync(path, large);
  equal(await other.adopt?.(digest, path), true);
  ok((await collect(other.read(digest))).equals(large));
  deepEqual([existsSync(path), readdirSync(join(rig.root, "uploads"))], [false, []]);
  await rig.dispose();
});

test("a file that does not fit is refused, and stays", async () => {
  const { rig, blobs, path } = await withFinished();
  await rig.reopen({ sizeBytesMax: 300_000 });
  await rejects(
    async () => await rig.store.forTenant("mill").blobs.adopt?.(digest, path),
    (error) => isFault(error, "exhausted"),
  );
  ok(readFileSync(path).equals(large));
  deepEqual(await blobs.missing([digest]), [digest]);
  await rig.dispose();
});

test("a lent file stays while its blob is evicted, and goes when it is given back", async () => {
  const { rig, clock, blobs, path } = await withFinished();
  await blobs.adopt?.(digest, path);
  const lent = await blobs.path?.(digest);
  await clock.advance(10_000);
  await rig.store.upkeep.evict(0);
  deepEqual(await blobs.missing([digest]), [digest]);
  ok(readFileSync(lent?.path ?? "").equals(large));
  await lent?.release();
  equal(statSync(lent?.path ?? "", { throwIfNoEntry: false }), undefined);
  await rig.dispose();
});

test("a lent file whose blob went and came back stays", async () => {
  const { rig, clock, blobs, path } = await withFinished();
  await blobs.adopt?.(digest, path);
  const lent = await blobs.path?.(digest);
  await clock.advance(10_000);
  await rig.store.upkeep.evict(0);
  await blobs.write(digest, large);
  await lent?.release();
  ok((await collect(blobs.read(digest))).equals(large));
  await rig.dispose();
});

test("a damaged file is not lent", async () => {
  const { rig, blobs, path } = await withFinished();
  await blobs.adopt?.(digest, path);
  const lent = await blobs.path?.(digest);
  await lent?.release();
  writeFileSync(lent?.path ?? "", Buffer.alloc(300_000, "chaff "));
  equal(await blobs.path?.(digest), undefined);
  await rig.dispose();
});

test("over a tier an adopted file is sent there, and a far blob is brought here to be lent", async () => {
  const { rig, clock, path } = await withFinished();
  const far = createMemoryBlobs({ clock, sizeBytesMax: 10_000_000 });
  const blobs = readThrough({ near: rig.store.forTenant("mill").blobs, far, whenDead: "refuse" });
  equal(await blobs.adopt?.(digest, path), true);
  deepEqual(await far.missing([digest]), []);
  const bread = Buffer.alloc(400_000, "bread ");
  await far.write(digestOf(bread), bread);
  const lent = await blobs.path?.(digestOf(bread));
  ok(readFileSync(lent?.path ?? "").equals(bread));
  await lent?.release();
  await rig.dispose();
});
