import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { put, text } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import { until } from "#testing/until.ts";
import { openDiskStore, type DiskStore } from "./open.ts";
import { diskRig, quietClock, type DiskRig } from "./testing/disk.ts";

const logFiles = (rig: DiskRig): readonly string[] =>
  readdirSync(join(rig.root, "log"))
    .toSorted()
    .map((name) => join(rig.root, "log", name));

const filesOf = (rig: DiskRig): readonly string[] =>
  readdirSync(join(rig.root, "files"), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name));

function flip(path: string, needle: string): void {
  const bytes = readFileSync(path);
  const at = bytes.indexOf(needle);
  ok(at > 0, "the bytes to be damaged");
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

const isGone = (e: unknown): boolean => isFault(e, "not-found");

test("bit rot in a packed blob is noticed, the blob is dropped, and can be written again", async () => {
  const rig = await diskRig();
  const digest = await put(rig.store.forTenant("mill").blobs, "a needle in the stack");
  const other = await put(rig.store.forTenant("mill").blobs, "another straw");
  await rig.store.close();
  flip(logFiles(rig)[0] ?? "", "needle");
  await rig.reopen();
  const { blobs } = rig.store.forTenant("mill");
  await rejects(text(blobs.read(digest)), isGone);
  deepEqual(await blobs.missing([digest, other]), [digest]);
  await put(blobs, "a needle in the stack");
  equal(await text(blobs.read(digest)), "a needle in the stack");
  equal(await text(blobs.read(other)), "another straw");
  await rig.dispose();
});

for (const compression of ["none", "zstd"] as const)
  test(`a large blob (${compression}) that was truncated, changed or lost is dropped, and can be written again`, async () => {
    const rig = await diskRig({ compression });
    const large = Buffer.alloc(300_000, "flour ");
    const digest = digestOf(large);
    const damages: readonly ((path: string) => void)[] = [
      (path) => truncateSync(path, 1_000),
      (path) => rmSync(path),
      (path) => {
        const bytes = readFileSync(path);
        bytes[20] = (bytes[20] ?? 0) ^ 64;
        writeFileSync(path, bytes);
      },
    ];
    for (const [i, damage] of damages.entries()) {
      const { blobs } = rig.store.forTenant("mill");
      await blobs.write(digest, large);
      damage(filesOf(rig)[0] ?? "");
      const wrong: Digest[] = [];
      // Only a read of the whole file notices a changed byte.
      if (i === 2)
        for await (const told of rig.store.upkeep.verify(AbortSignal.timeout(10_000))) wrong.push(...told.wrong);
      else await rejects(text(blobs.read(digest)), isGone);
      deepEqual(wrong, i === 2 ? [digest] : []);
      deepEqual(await blobs.missing([digest]), [digest]);
    }
    await rig.store.forTenant("mill").blobs.write(digest, large);
    equal((await text(rig.store.forTenant("mill").blobs.read(digest))).length, 300_000);
    await rig.dispose();
  });

test("a log that ends within a record is truncated there; complete records are kept", async () => {
  const rig = await diskRig();
  const { blobs } = rig.store.forTenant("mill");
  const [one, two] = [await put(blobs, "one"), await put(blobs, "two")];
  await rig.store.close();
  rmSync(join(rig.root, "checkpoint"));
  const [log = ""] = logFiles(rig);
  const whole = readFileSync(log).length;
  truncateSync(log, whole - 8);
  await rig.reopen();
  deepEqual(await rig.store.forTenant("mill").blobs.missing([one, two]), [two]);
  await rig.store.close();
  rmSync(join(rig.root, "checkpoint"));
  appendFileSync(log, "rubbish that a failing disk left");
  await rig.reopen();
  ok(rig.store.recovered.cutBytes > 0);
  const again = rig.store.forTenant("mill").blobs;
  deepEqual(await again.missing([one]), []);
  await put(again, "two");
  await rig.reopen();
  deepEqual(await rig.store.forTenant("mill").blobs.missing([one, two]), []);
  await rig.dispose();
});

test("a damaged checkpoint is ignored", async () => {
  const rig = await diskRig();
  const { blobs } = rig.store.forTenant("mill");
  const digest = await put(blobs, "kept");
  await rig.store.close();
  const path = join(rig.root, "checkpoint");
  const bytes = readFileSync(path);
  for (const at of [3, 20, 60, Math.floor(bytes.length / 2), bytes.length - 1]) {
    const wrong = Buffer.from(bytes);
    wrong[at] = (wrong[at] ?? 0) ^ 1;
    writeFileSync(path, wrong);
    await rig.reopen();
    equal(await text(rig.store.forTenant("mill").blobs.read(digest)), "kept", `byte ${at}`);
    await rig.store.close();
  }
  writeFileSync(path, bytes.subarray(0, bytes.length - 7));
  await rig.reopen();
  equal(rig.store.recovered.fromCheckpoint, false);
  equal(await text(rig.store.forTenant("mill").blobs.read(digest)), "kept");
  await rig.dispose();
});

test("a segment with damage in its middle is compacted without losing the records behind it", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, sizeBytesMax: 64 * 1024 * 1024, promisedMs: 1_000, memoryBytesMax: 0 });
  const { blobs } = rig.store.forTenant("mill");
  const waste: Digest[] = [];
  const kept: Digest[] = [];
  for (let i = 0; i < 150; i += 1) {
    const value = `${i % 15 === 3 ? "kept" : "waste"} ${i} `.repeat(5_000);
    (i % 15 === 3 ? kept : waste).push(await put(blobs, value));
  }
  await blobs.pin(kept, 1_000_000);
  await clock.advance(10_000);
  await rig.store.close();
  const damaged = readFileSync(logFiles(rig)[0] ?? "");
  damaged.fill(0, 100_000, 100_100); // probably inside a blob, not in a header
  const header = damaged.indexOf("waste 5 ") - 80;
  damaged.fill(0xff, header, header + 40);
  writeFileSync(logFiles(rig)[0] ?? "", damaged);
  await rig.reopen();
  await rig.store.upkeep.evict(0);
  const again = rig.store.forTenant("mill").blobs;
  deepEqual(await again.missing(waste), waste);
  for (const digest of kept) equal(digestOf(Buffer.from(await text(again.read(digest)))), digest);
  ok(!logFiles(rig).some((path) => path.endsWith("00000001.log")));
  await rig.dispose();
});

test("after a reboot, recent large blobs are verified before they are served or pinned", async () => {
  const rig = await diskRig();
  const { blobs } = rig.store.forTenant("mill");
  const values = ["zeroed", "read well", "pinned well", "zeroed and pinned", "durable"].map((word) =>
    word.repeat(20_000),
  );
  const digests: Digest[] = [];
  for (const value of values) digests.push(await put(blobs, value));
  const [zeroed = "", readWell = "", pinnedWell = "", zeroedPinned = "", durable = ""] = digests;
  await blobs.pin([durable], 1_000);
  await rig.store.close();
  for (const path of filesOf(rig)) {
    const bytes = readFileSync(path);
    if ([zeroed, zeroedPinned].includes(digestOf(bytes))) writeFileSync(path, Buffer.alloc(bytes.length));
  }
  writeFileSync(join(rig.root, "last-boot"), "another life");
  await rig.reopen();
  await rig.reopen(); // a restart keeps the marks until the files were verified
  const again = rig.store.forTenant("mill").blobs;
  await rejects(text(again.read(zeroed)), isGone);
  equal(await text(again.read(readWell)), values[1]);
  equal(await text(again.read(durable)), values[4]);
  deepEqual(await again.pin([pinnedWell, zeroedPinned], 1_000), { missing: [zeroedPinned] });
  equal(await text(again.read(pinnedWell)), values[2]);
  await rig.dispose();
});

const smallStore = { sizeBytesMax: 16 * 1024 * 1024, promisedMs: 1_000 };

/** A rig that writes checkpoints only when it is closed, and what a kill at this moment would leave. */
async function killable() {
  const time = new ManualClock(10_000_000);
  const clock = { ...quietClock, monotonicMs: () => time.monotonicMs(), wallMs: () => time.wallMs() };
  const rig = await diskRig({ clock, ...smallStore });
  const waste = async (seed: string): Promise<void> => {
    for (let i = 0; i < 60; i += 1) await put(rig.store.forTenant("mill").blobs, `${seed} ${i} `.repeat(4_000));
    await time.advance(10_000);
  };
  const killed = async (body: (store: DiskStore) => Promise<void>): Promise<void> => {
    const copy = `${rig.root}-killed`;
    cpSync(rig.root, copy, { recursive: true });
    rmSync(join(copy, "in-use-by"));
    const store = await openDiskStore(copy, { clock, ...smallStore });
    await body(store);
    await store.close();
    rmSync(copy, { recursive: true });
  };
  return { rig, time, waste, killed };
}

test("B2: a blob copied twice since the last checkpoint is found after a kill", async () => {
  const { rig, time, waste, killed } = await killable();
  await waste("first");
  const kept = await put(rig.store.forTenant("mill").blobs, "kept through all of it");
  await rig.store.forTenant("mill").blobs.pin([kept], 1_000_000);
  await waste("second");
  await rig.reopen(); // with a checkpoint that names its place then
  for (const seed of ["third", "fourth", "fifth"]) {
    await waste(seed);
    await rig.store.upkeep.evict(0);
  }
  await killed(async (store) => {
    const { blobs } = store.forTenant("mill");
    equal(await text(blobs.read(kept)), "kept through all of it");
    await time.advance(10_000);
    await store.upkeep.evict(0);
    deepEqual(await blobs.missing([kept]), [], "and it is still pinned");
  });
  await rig.dispose();
});

test("B3: a blob evicted since the last checkpoint stays gone after a kill, although the log is gone", async () => {
  const { rig, time, waste, killed } = await killable();
  const { blobs } = rig.store.forTenant("mill");
  const large = await put(blobs, "large ".repeat(50_000));
  const anchors: Digest[] = []; // they keep the segment alive that holds its record
  for (let i = 0; i < 25; i += 1) anchors.push(await put(blobs, `anchor ${i} `.repeat(5_000)));
  await blobs.pin(anchors, 1_000_000);
  await rig.reopen();
  await time.advance(10_000);
  for (const seed of ["second", "third", "fourth"]) {
    await rig.store.upkeep.evict(0);
    await waste(seed);
  }
  await killed(async (store) => {
    const again = store.forTenant("mill").blobs;
    deepEqual(await again.missing([large, ...anchors]), [large]);
  });
  await rig.dispose();
});

test("a log without a checkpoint does not bring back removed files", async () => {
  const { rig, time, waste } = await killable();
  const large = await put(rig.store.forTenant("mill").blobs, "large ".repeat(50_000));
  await waste("first");
  await rig.store.upkeep.evict(0);
  await time.advance(10_000);
  await rig.store.close();
  rmSync(join(rig.root, "checkpoint"));
  await rig.reopen();
  deepEqual(await rig.store.forTenant("mill").blobs.missing([large]), [large]);
  await rig.dispose();
});

test("B4: segment numbers are not reused, because their records would be older than the checkpoint", async () => {
  const { rig, killed } = await killable();
  await put(rig.store.forTenant("mill").blobs, "waste");
  await rig.store.close();
  rmSync(join(rig.root, "log", "00000001.log")); // as when all of it is dead and it is compacted
  await rig.reopen();
  const digest = await put(rig.store.forTenant("mill").blobs, "written after that");
  await killed(async (store) => {
    equal(await text(store.forTenant("mill").blobs.read(digest)), "written after that");
  });
  await rig.dispose();
});

type Loss = (path: string) => void;
const losses: Readonly<Record<string, Loss>> = {
  removed: (path) => rmSync(path),
  cut: (path) => truncateSync(path, 16),
};

/** Two blobs in the first segment, one small and one large, and a store that has begun a segment of its own. */
async function withOldSegment(lose: Loss, isOpen: boolean) {
  const time = new ManualClock(10_000_000);
  const rig = await diskRig({ clock: time, memoryBytesMax: 0 });
  const bytes = [Buffer.from("grain "), Buffer.alloc(300_000, "flour ")];
  for (const one of bytes) await rig.store.forTenant("mill").blobs.write(digestOf(one), one);
  const digests = bytes.map((one) => digestOf(one));
  await rig.reopen();
  const { blobs } = rig.store.forTenant("mill");
  await put(blobs, "a segment of its own");
  if (isOpen) for (const digest of digests) await text(blobs.read(digest));
  lose(logFiles(rig)[0] ?? "");
  return { rig, time, bytes, digests };
}

for (const [how, lose] of Object.entries(losses))
  for (const isOpen of [true, false])
    describe(`a log that was ${how} while the store ${isOpen ? "" : "hardly "}uses it`, () => {
      test("B4: what is sent again is there after a restart", async () => {
        const { rig, bytes, digests } = await withOldSegment(lose, isOpen);
        const { blobs, uploads } = rig.store.forTenant("mill");
        const [small, large] = bytes;
        await blobs.write(digests[0] ?? "", small ?? Buffer.alloc(0));
        const upload = await uploads.open({ uuid: "again", digest: digests[1] ?? "" }, 0);
        await upload.append(large ?? Buffer.alloc(0));
        await upload.finish();
        await rig.reopen();
        deepEqual(await rig.store.forTenant("mill").blobs.missing(digests), []);
        await rig.dispose();
      });

      test("B3: what is reported present a little later is there after a restart", async () => {
        const { rig, time, digests } = await withOldSegment(lose, isOpen);
        const { blobs } = rig.store.forTenant("mill");
        await time.advance(3_000);
        await until("it is noticed", () => !logFiles(rig).some((path) => path.endsWith("00000001.log")));
        await rig.store.housekeeping.settled();
        const missing = await blobs.missing(digests);
        const isReadable = isOpen && how === "removed";
        deepEqual(missing, isReadable ? [] : [digests[0]], "the bytes of the large one are in its file");
        await rig.reopen();
        deepEqual(await rig.store.forTenant("mill").blobs.missing(digests), missing);
        await rig.dispose();
      });
    });
