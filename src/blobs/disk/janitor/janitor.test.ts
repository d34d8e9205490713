import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import { put, text } from "#blobs/testing/exercise.ts";
import type { BlobStore } from "#blobs/store.ts";
import { AgeSurvey, worthTidying } from "./choose.ts";
import { diskRig } from "#blobs/disk/testing/disk.ts";

const MiB = 1024 * 1024;

/** `count` different blobs of `sizeBytes` each. */
async function fill(
  blobs: BlobStore,
  what: { readonly count: number; readonly sizeBytes: number; readonly seed: string },
) {
  const digests: Digest[] = [];
  for (let i = 0; i < what.count; i += 1) {
    const bytes = Buffer.alloc(what.sizeBytes, `${what.seed}-${i} `);
    const digest = digestOf(bytes);
    await blobs.write(digest, bytes);
    digests.push(digest);
  }
  return digests;
}

test("a survey returns the time of last use before which enough is evicted", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ at: fc.integer({ min: 1_000, max: 9_000 }), bytes: fc.integer({ min: 1, max: 100 }) })),
      fc.nat(3_000),
      (things, wanted) => {
        const survey = new AgeSurvey(1_000, 9_000);
        for (const { at, bytes } of things) survey.add(at, bytes);
        const cutOff = survey.cutOffSec(wanted);
        const total = things.reduce((sum, { bytes }) => sum + bytes, 0);
        const gone = things.filter(({ at }) => at < cutOff).reduce((sum, { bytes }) => sum + bytes, 0);
        ok(gone >= Math.min(wanted, total));
        const less = things.filter(({ at }) => at < cutOff - 2).reduce((sum, { bytes }) => sum + bytes, 0);
        ok(less < wanted || wanted === 0 || cutOff === 1_002, "but not much more");
      },
    ),
  );
});

test("segments with the most dead bytes for the least copying are compacted first", () => {
  const use = (number: number, liveBytes: number) => ({ number, sizeBytes: 100, liveBytes });
  const segments = [use(1, 90), use(2, 10), use(3, 60), use(4, 100)];
  deepEqual(worthTidying(segments, 0, 0.5), [2]);
  deepEqual(worthTidying(segments, 100, 0.02), [2, 3]);
  deepEqual(worthTidying(segments, 1_000, 0.02), [2, 3, 1]);
});

test("a full store evicts what was unused the longest, packed or not, and takes new blobs", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, sizeBytesMax: 32 * MiB, promisedMs: 60_000 });
  const { blobs } = rig.store.forTenant("mill");
  const old = await fill(blobs, { count: 100, sizeBytes: 60_000, seed: "old" });
  const large = await fill(blobs, { count: 10, sizeBytes: MiB, seed: "large" });
  await clock.advance(120_000);
  const [kept = "", keptLarge = ""] = [old[5], large[3]];
  deepEqual(await blobs.missing([kept, keptLarge]), []); // used again
  await clock.advance(30_000);
  const young = await fill(blobs, { count: 350, sizeBytes: 60_000, seed: "young" });
  deepEqual(await blobs.missing([kept, keptLarge]), [], "promised");
  const stat = await rig.store.upkeep.stat();
  ok(stat.usedBytes <= 32 * MiB, `${stat.usedBytes}`);
  ok(stat.evictedBlobs > 50);
  const { evictionAgeSec, evictedBlobs } = rig.store.upkeep.figures();
  equal(evictedBlobs, stat.evictedBlobs);
  ok(evictionAgeSec >= 60 && evictionAgeSec <= 160, `evicted blobs had been unused for ${evictionAgeSec} s`);
  deepEqual(await blobs.missing(young), [], "no promised blob was evicted");
  for (const digest of [kept, keptLarge, ...young.slice(0, 20)]) {
    const bytes = await text(blobs.read(digest));
    equal(digestOf(Buffer.from(bytes)), digest);
  }
  await rig.reopen();
  const again = rig.store.forTenant("mill").blobs;
  deepEqual(await again.missing(young), []);
  equal(digestOf(Buffer.from(await text(again.read(young[9] ?? "")))), young[9]);
  await rig.dispose();
});

test("who evicts while a sweep is under way that wants less gets what was asked for", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, sizeBytesMax: 32 * MiB, promisedMs: 0 });
  const { blobs } = rig.store.forTenant("mill");
  const old = await fill(blobs, { count: 20, sizeBytes: 60_000, seed: "old" });
  await clock.advance(5_000);
  const young = await fill(blobs, { count: 20, sizeBytes: 60_000, seed: "young" });
  await clock.advance(5_000);
  const { usedBytes } = await rig.store.upkeep.stat();
  await Promise.all([rig.store.upkeep.evict(usedBytes - 1), rig.store.upkeep.evict(0), rig.store.upkeep.evict(0)]);
  deepEqual(await blobs.missing([...old, ...young]), [...old, ...young]);
  await rig.dispose();
});

test("a store full of promised blobs refuses writes, with a hint, until promises end", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, sizeBytesMax: 16 * MiB, promisedMs: 600_000 });
  const { blobs, uploads } = rig.store.forTenant("mill");
  const large = await fill(blobs, { count: 10, sizeBytes: MiB, seed: "large" });
  const refused = (e: unknown): boolean => isFault(e, "exhausted") && Number(e.facts["retryAfterMs"]) > 0;
  await rejects(fill(blobs, { count: 200, sizeBytes: 60_000, seed: "x" }), refused);
  const upload = await uploads.open({ uuid: "u", digest: digestOf(Buffer.alloc(4 * MiB)) }, 0);
  await rejects(upload.append(Buffer.alloc(4 * MiB)), refused);
  await upload.suspend();
  equal((await text(blobs.read(large[0] ?? ""))).length, MiB);
  await clock.advance(700_000);
  const taken = await fill(blobs, { count: 3, sizeBytes: MiB, seed: "later" });
  deepEqual(await blobs.missing(taken), []);
  await rig.dispose();
});

test("B2: a pinned blob stays, also over a restart; afterwards it may be evicted", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, sizeBytesMax: 32 * MiB, promisedMs: 1_000 });
  const { blobs } = rig.store.forTenant("mill");
  const pinned = await fill(blobs, { count: 5, sizeBytes: 50_000, seed: "pinned" });
  const large = await fill(blobs, { count: 2, sizeBytes: MiB, seed: "pinned large" });
  const loose = await fill(blobs, { count: 5, sizeBytes: 50_000, seed: "loose" });
  deepEqual(await blobs.pin([...pinned, ...large], 100_000), { digests: [...pinned, ...large], pinnedForMs: 100_000 });
  await clock.advance(10_000);
  await rig.reopen();
  const again = rig.store.forTenant("mill").blobs;
  await clock.advance(10_000);
  await rig.store.upkeep.evict(0);
  deepEqual(await again.missing([...pinned, ...large]), []);
  deepEqual(await again.missing(loose), loose);
  await clock.advance(100_000);
  await rig.store.upkeep.evict(0);
  deepEqual(await again.missing([...pinned, ...large]), [...pinned, ...large]);
  ok((await rig.store.upkeep.stat()).usedBytes < 2 * MiB);
  await rig.dispose();
});

test("compaction keeps bytes, grants, pins and names, also without a checkpoint", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, sizeBytesMax: 64 * MiB, promisedMs: 1_000 });
  const tenants = Array.from({ length: 40 }, (_, i) => `tenant ${i}`);
  const kept: Digest[] = [];
  for (let round = 0; round < 20; round += 1) {
    const { blobs } = rig.store.forTenant(tenants[round] ?? "");
    await fill(blobs, { count: 60, sizeBytes: 30_000, seed: `waste ${round}` });
    const [digest = ""] = await fill(blobs, { count: 1, sizeBytes: 30_000, seed: `kept ${round}` });
    for (const other of tenants.slice(28)) await put2(rig.store.forTenant(other).blobs, round);
    await blobs.pin([digest], 10_000_000);
    kept.push(digest);
    const key = { tenant: "mill", space: "ac", name: `n${round}` };
    await rig.store.index.put(key, { digest, principal: "ada", atMs: round });
    if (round % 2 === 0) await rig.store.index.remove(key);
  }
  await clock.advance(100_000);
  for (let round = 1; round < 20; round += 2)
    await rig.store.index.get({ tenant: "mill", space: "ac", name: `n${round}` });
  const before = (await rig.store.upkeep.stat()).usedBytes;
  await rig.store.upkeep.evict(0);
  const after = (await rig.store.upkeep.stat()).usedBytes;
  ok(
    after < before / 5, // all but the current segment
    `${before} -> ${after}`,
  );

  const check = async (): Promise<void> => {
    for (const [round, digest] of kept.entries()) {
      for (const tenant of [tenants[round] ?? "", ...tenants.slice(28)])
        equal((await text(rig.store.forTenant(tenant).blobs.read(digest))).length, 30_000, tenant);
      await rejects(text(rig.store.forTenant("stranger").blobs.read(digest)), (e) => isFault(e, "not-found"));
      const entry = await rig.store.index.get({ tenant: "mill", space: "ac", name: `n${round}` });
      equal(entry?.digest, round % 2 === 0 ? undefined : digest);
    }
  };
  await check();
  await rig.reopen();
  await check();
  await rig.reopen({ clock });
  await rig.store.close();
  await rm(join(rig.root, "checkpoint"));
  await rig.reopen();
  equal(rig.store.recovered.fromCheckpoint, false);
  await check();
  await rig.store.upkeep.evict(0);
  await check();
  await rig.dispose();
});

const put2 = (blobs: BlobStore, round: number): Promise<void> => {
  const bytes = Buffer.alloc(30_000, `kept ${round}-0 `);
  return blobs.write(digestOf(bytes), bytes);
};

test("files that no entry names are removed", async () => {
  const rig = await diskRig();
  const { blobs } = rig.store.forTenant("mill");
  const digest = await put(blobs, "y".repeat(100_000));
  await rig.store.close();
  await rm(join(rig.root, "log"), { recursive: true });
  await rm(join(rig.root, "checkpoint"));
  await rig.reopen();
  deepEqual(await rig.store.forTenant("mill").blobs.missing([digest]), [digest]);
  equal((await readdir(join(rig.root, "files"))).length, 1);
  for (let i = 0; i < 10; i += 1) await rig.store.housekeeping.strays.lookOn(-1);
  const left = await readdir(join(rig.root, "files"), { recursive: true });
  deepEqual(
    left.filter((name) => name.includes(".")),
    [],
  );
  await rig.dispose();
});

test("bytes handed to a caller do not change, whatever is written and read afterwards", async () => {
  const rig = await diskRig({ memoryBytesMax: 4 * MiB });
  const { blobs } = rig.store.forTenant("mill");
  const digests = await fill(blobs, { count: 50, sizeBytes: 50_000, seed: "shown" });
  const shown = digests.map((digest) => blobs.prompt?.bytes(digest));
  await fill(blobs, { count: 300, sizeBytes: 50_000, seed: "later" });
  const again = digests.map((digest) => blobs.prompt?.bytes(digest));
  await fill(blobs, { count: 300, sizeBytes: 50_000, seed: "and later" });
  ok(shown.some((bytes) => bytes));
  // A slow disk is not read for `prompt`, which then returns nothing.
  for (const [i, digest] of digests.entries())
    for (const bytes of [shown[i], again[i]]) if (bytes) equal(digestOf(bytes), digest);
  await rig.dispose();
});
