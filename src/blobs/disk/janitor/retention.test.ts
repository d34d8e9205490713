/** How long blobs are kept: the latest of several pins counts, and promises count from the last acknowledged use. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import { openDiskStore, type OpenDisk } from "#blobs/disk/open.ts";
import { realSyncs } from "#blobs/syncs.ts";
import { until } from "#testing/until.ts";
import { diskRig, type DiskRig } from "#blobs/disk/testing/disk.ts";

const MiB = 1024 * 1024;
const minutes = 60_000;
const hour = 60 * minutes;

type Rig = DiskRig & {
  readonly manual: ManualClock;
  put(seed: string, sizeBytes?: number): Promise<Digest>;
  pin(digest: Digest, forMs: number): Promise<void>;
  /** Which of them are left after evicting all that may be evicted. */
  left(...digests: readonly Digest[]): Promise<readonly boolean[]>;
};

async function withRig(options: Partial<OpenDisk>, body: (rig: Rig) => Promise<void>): Promise<void> {
  const manual = new ManualClock(10_000_000);
  const rig = await diskRig({
    clock: manual,
    sizeBytesMax: 32 * MiB,
    segmentBytes: MiB / 4,
    promisedMs: 0,
    ...options,
  });
  const blobs = () => rig.store.forTenant("mill").blobs;
  try {
    await body(
      Object.assign(rig, {
        manual,
        async put(seed: string, sizeBytes = 30_000) {
          const bytes = Buffer.alloc(sizeBytes, seed);
          await blobs().write(digestOf(bytes), bytes);
          return digestOf(bytes);
        },
        async pin(digest: Digest, forMs: number) {
          deepEqual(await blobs().pin([digest], forMs), { digests: [digest], pinnedForMs: forMs });
        },
        async left(...digests: readonly Digest[]) {
          await rig.store.upkeep.evict(0);
          // Unlike `missing`, this does not count as a use.
          return digests.map((digest) => rig.store.all.prompt?.sizeOf?.("sha256", digest.slice(0, 64)) !== undefined);
        },
      }),
    );
  } finally {
    await rig.dispose();
  }
}

const lives = {
  "in the same process": async () => {},
  "after a restart": async (rig: Rig) => void (await rig.reopen()),
  "after a restart without its checkpoint": async (rig: Rig) => {
    await rig.store.close();
    rmSync(join(rig.root, "checkpoint"));
    await rig.reopen();
  },
  "after its segment was compacted, and a restart": async (rig: Rig) => {
    for (let i = 0; i < 40; i += 1) await rig.put(`loose ${i}`);
    await rig.manual.advance(2 * minutes);
    await rig.store.upkeep.evict(0);
    await rig.store.close();
    rmSync(join(rig.root, "checkpoint"));
    await rig.reopen();
  },
} as const;

describe("a shorter pin does not shorten a longer one", { timeout: 60_000 }, () => {
  for (const [when, live] of Object.entries(lives))
    for (const [what, sizeBytes] of [
      ["packed", 30_000],
      ["large", 300_000],
    ] as const)
      test(`${what}, ${when}`, () =>
        withRig({}, async (rig) => {
          const longFirst = await rig.put("long first", sizeBytes);
          const shortFirst = await rig.put("short first", sizeBytes);
          await rig.pin(longFirst, hour);
          await rig.pin(shortFirst, 5 * minutes);
          for (let i = 0; i < 10; i += 1) await rig.put(`between ${i}`); // so that the next pins are in another segment
          await rig.pin(longFirst, 5 * minutes);
          await rig.pin(shortFirst, hour);
          await live(rig);
          await rig.manual.advance(40 * minutes);
          deepEqual(await rig.left(longFirst, shortFirst), [true, true]);
          await rig.manual.advance(21 * minutes);
          deepEqual(await rig.left(longFirst, shortFirst), [false, false]);
        }));
});

test("a pin survives the compaction of the segment with its record, while its blob stays where it is", () =>
  withRig({}, async (rig) => {
    const digests: Digest[] = [];
    for (let i = 0; i < 4; i += 1) digests.push(await rig.put(`stays ${i}`, 60_000)); // fills the first segment
    for (const digest of digests) await rig.pin(digest, 5 * minutes);
    for (let i = 0; i < 4; i += 1) await rig.put(`goes ${i}`, 60_000);
    for (const digest of digests) await rig.pin(digest, hour);
    for (let i = 0; i < 8; i += 1) await rig.put(`goes, too ${i}`, 60_000);
    await rig.manual.advance(minutes);
    await rig.store.upkeep.evict(0);
    ok(existsSync(join(rig.root, "log", "00000001.log")) && !existsSync(join(rig.root, "log", "00000002.log")));
    await rig.store.close();
    rmSync(join(rig.root, "checkpoint"));
    await rig.reopen();
    await rig.manual.advance(40 * minutes);
    deepEqual(await rig.left(...digests), [true, true, true, true]);
  }));

test("a pin holds for its whole time, and not much longer", () =>
  withRig({}, async (rig) => {
    const digest = await rig.put("pinned");
    await rig.manual.advance(400); // not on a full second
    await rig.pin(digest, 10_500);
    await rig.manual.advance(10_499);
    deepEqual(await rig.left(digest), [true]);
    await rig.manual.advance(3_000);
    deepEqual(await rig.left(digest), [false]);
  }));

test("a pin whose record is being written already protects all its blobs", async () => {
  let gate = Promise.resolve();
  const syncs = {
    ...realSyncs,
    file: async (fd: number, path: string) => await gate.then(() => realSyncs.file(fd, path)),
  };
  await withRig({ sync: "synced", syncs }, async (rig) => {
    const digests: Digest[] = [];
    for (let i = 0; i < 5; i += 1) digests.push(await rig.put(`pinned ${i}`));
    const loose = await rig.put("loose");
    const slow = Promise.withResolvers<void>();
    gate = slow.promise;
    const pinning = rig.store.forTenant("mill").blobs.pin(digests, hour);
    await rig.manual.advance(10 * minutes);
    const left = rig.left(...digests, loose); // waits for the disk, too
    const isThere = (digest: Digest) => rig.store.all.prompt?.sizeOf?.("sha256", digest.slice(0, 64)) !== undefined;
    await until("the unpinned blob is evicted", () => !isThere(loose));
    slow.resolve();
    deepEqual(await pinning, { digests, pinnedForMs: hour });
    deepEqual(await left, [true, true, true, true, true, false]);
  });
});

test("a pin of one blob does not affect others", () =>
  withRig({}, async (rig) => {
    const [one, other] = [await rig.put("one"), await rig.put("other")];
    await rig.pin(one, hour);
    await rig.manual.advance(10 * minutes);
    deepEqual(await rig.left(one, other), [true, false]);
  }));

describe("a blob that a client stored or was told to be present", { timeout: 60_000 }, () => {
  const promised = { promisedMs: hour };

  test("stays for the promised time, whatever the second of the use", () =>
    withRig(promised, async (rig) => {
      const stored = await rig.put("stored");
      const told = await rig.put("told");
      await rig.manual.advance(55_000);
      deepEqual(await rig.store.forTenant("mill").blobs.missing([told]), []);
      await rig.manual.advance(hour - 56_000);
      deepEqual(await rig.left(stored, told), [true, true]);
      await rig.manual.advance(55_000);
      deepEqual(await rig.left(told), [true], "its last use was 55 s after it was stored");
      await rig.manual.advance(5 * minutes);
      deepEqual(await rig.left(stored, told), [false, false]);
    }));

  for (const how of ["has", "hasMany", "read", "write", "grant"] as const)
    test(`counts from the last use: ${how}`, () =>
      withRig(promised, async (rig) => {
        const digest = await rig.put("used");
        const bytes = Buffer.alloc(30_000, "used");
        const hash = Buffer.from(digest.slice(0, 64), "hex");
        await rig.manual.advance(50 * minutes);
        const { blobs } = rig.store.forTenant("mill");
        if (how === "has") equal(blobs.prompt?.has("sha256", hash, 0, 30_000), true);
        else if (how === "hasMany") {
          const found = new Uint8Array(1);
          blobs.prompt?.hasMany?.(
            "sha256",
            { hashes: Uint8Array.from(hash), sizes: Float64Array.of(30_000), count: 1 },
            found,
          );
          deepEqual([...found], [1]);
        } else if (how === "read") for await (const _ of blobs.read(digest));
        else await rig.store.forTenant(how === "grant" ? "other" : "mill").blobs.write(digest, bytes);
        await rig.store.housekeeping.touches.flush();
        await rig.manual.advance(59 * minutes);
        deepEqual(await rig.left(digest), [true]);
        await rig.manual.advance(5 * minutes);
        deepEqual(await rig.left(digest), [false]);
      }));

  test("counts from when it was used, not from when that is recorded", () =>
    withRig({}, async (rig) => {
      const digest = await rig.put("used");
      await rig.manual.advance(2_000);
      deepEqual(await rig.store.forTenant("mill").blobs.missing([digest]), []);
      await rig.manual.advance(1_000);
      await rig.store.housekeeping.touches.flush();
      deepEqual(await rig.left(digest), [false]);
    }));

  for (const checkpoint of ["with", "without"] as const)
    test(`is still promised after a restart ${checkpoint} a checkpoint`, () =>
      withRig(promised, async (rig) => {
        const digest = await rig.put("used");
        await rig.manual.advance(50 * minutes);
        await rig.store.forTenant("mill").blobs.missing([digest]);
        await rig.store.close();
        if (checkpoint === "without") rmSync(join(rig.root, "checkpoint"));
        await rig.reopen();
        await rig.manual.advance(50 * minutes);
        deepEqual(await rig.left(digest), [true]);
        await rig.manual.advance(20 * minutes);
        deepEqual(await rig.left(digest), [false]);
      }));

  test("stays if it is used or pinned while others of its age are evicted", () =>
    withRig(promised, async (rig) => {
      const digests: Digest[] = [];
      for (let i = 0; i < 900; i += 1) digests.push(await rig.put(`old ${i}`, 100));
      await rig.manual.advance(2 * hour);
      const isThere = (digest: Digest) => rig.store.all.prompt?.sizeOf?.("sha256", digest.slice(0, 64)) !== undefined;
      const { blobs } = rig.store.forTenant("mill");
      const evicting = rig.store.upkeep.evict(0);
      for (let turns = 0; turns < 100_000 && isThere(digests[0] ?? ""); turns += 1) await new Promise(setImmediate);
      const saved = digests.filter(isThere).slice(-20);
      equal(saved.length, 20, "and some have not");
      deepEqual(await blobs.missing(saved.slice(0, 10)), []);
      deepEqual(await blobs.pin(saved.slice(10), hour), { digests: saved.slice(10), pinnedForMs: hour });
      await evicting;
      deepEqual(saved.filter(isThere), saved);
      equal(digests.filter(isThere).length, 20);
    }));
});

test("a blob stored while the wall clock was wrong is promised as long as any other", async () => {
  const root = mkdtempSync(join(tmpdir(), "millrace-clock-"));
  const at = (hours: number) =>
    openDiskStore(root, { clock: new ManualClock(hours * hour), sizeBytesMax: 32 * MiB, promisedMs: hour });
  const putAt = async (hours: number, seed: string): Promise<Digest> => {
    const store = await at(hours);
    const bytes = Buffer.alloc(30_000, seed);
    await store.forTenant("mill").blobs.write(digestOf(bytes), bytes);
    await store.close();
    return digestOf(bytes);
  };
  try {
    const digests = [await putAt(2_000, "right"), await putAt(1_000, "set back"), await putAt(2_000.1, "right again")];
    const store = await at(2_000.2);
    await store.upkeep.evict(0);
    deepEqual(await store.all.missing(digests), []);
    await store.close();
  } finally {
    rmSync(root, { recursive: true });
  }
});
