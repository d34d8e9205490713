/** What survives a power failure (B2, B4, B8): each promise is checked on a disk that keeps only what was synced. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { DurableImage } from "#blobs/durable-image.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Syncs } from "#blobs/syncs.ts";
import { until } from "#testing/until.ts";
import { openDiskStore, type DiskStore, type OpenDisk } from "#blobs/disk/open.ts";

const MiB = 1024 * 1024;
const tenant = "mill";

type Rig = {
  readonly store: DiskStore;
  readonly blobs: BlobStore;
  readonly clock: ManualClock;
  readonly image: DurableImage;
  readonly root: string;
  /** Opens what a power failure at this moment would leave, with unsynced removals lost and kept. */
  readonly afterPowerLoss: (check: (store: DiskStore, blobs: BlobStore) => Promise<void>) => Promise<void>;
};

const small = { sizeBytesMax: 32 * MiB, memoryBytesMax: 4 * MiB, segmentBytes: MiB / 4, promisedMs: 1_000 };

type RigOptions = Partial<OpenDisk> & {
  /** Awaited after a file's bytes reached the disk, before the store continues. */
  readonly afterSync?: (path: string) => Promise<void>;
};

async function withRig({ afterSync, ...options }: RigOptions, body: (rig: Rig) => Promise<void>): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), "millrace-durable-"));
  const elsewhere = mkdtempSync(join(tmpdir(), "millrace-durable-left-"));
  const image = new DurableImage();
  const clock = new ManualClock(10_000_000);
  const root = join(base, "deep", "store");
  const open = (path: string, more: Partial<OpenDisk> = {}): Promise<DiskStore> =>
    openDiskStore(path, { ...small, ...options, ...more, clock });
  const syncs: Syncs = {
    ...image.syncs,
    async file(fd, path) {
      await image.syncs.file(fd, path);
      await afterSync?.(path);
    },
  };
  const store = await open(root, { syncs });
  let losses = 0;
  try {
    await body({
      store,
      blobs: store.forTenant(tenant).blobs,
      clock,
      image,
      root,
      async afterPowerLoss(check) {
        // Both images at the same moment: the store continues meanwhile.
        const targets = (["lost", "kept"] as const).map((removals) => {
          const target = join(elsewhere, `left ${(losses += 1)}`);
          image.restore(base, target, removals);
          return target;
        });
        for (const target of targets) {
          const left = await open(join(target, "deep", "store"));
          try {
            await check(left, left.forTenant(tenant).blobs);
          } finally {
            await left.close();
            rmSync(target, { recursive: true });
          }
        }
      },
    });
  } finally {
    await store.close();
    for (const path of [base, elsewhere]) rmSync(path, { recursive: true });
  }
}

async function put(blobs: BlobStore, seed: string, sizeBytes: number): Promise<Digest> {
  const bytes = Buffer.alloc(sizeBytes, `${seed} `);
  await blobs.write(digestOf(bytes), bytes);
  return digestOf(bytes);
}

async function checkAll(blobs: BlobStore, digests: readonly Digest[]): Promise<void> {
  deepEqual(await blobs.missing(digests), []);
  for (const digest of digests) {
    const parts: Uint8Array[] = [];
    for await (const part of blobs.read(digest)) parts.push(Uint8Array.from(part));
    equal(digestOf(Buffer.concat(parts)), digest);
  }
}

describe("after a power failure", { timeout: 60_000 }, () => {
  for (const compression of ["none", "zstd"] as const)
    test(`a pinned blob is there, complete and still pinned (compression: ${compression})`, () =>
      withRig({ compression }, async ({ blobs, clock, afterPowerLoss }) => {
        const pinned: Digest[] = [];
        for (let i = 0; i < 12; i += 1) {
          pinned.push(await put(blobs, `packed ${i}`, 40_000)); // several segments
          if (i % 4 === 0) pinned.push(await put(blobs, `large ${i}`, 300_000 + i));
        }
        ok("pinnedForMs" in (await blobs.pin(pinned, 600_000)));
        await put(blobs, "not pinned", 50_000);
        await clock.advance(300_000);
        await afterPowerLoss(async (store, left) => {
          await store.upkeep.evict(0); // before any read, which would count as a use
          await checkAll(left, pinned);
        });
      }));

  test("a pin's record in another segment is as durable as its blobs", () =>
    withRig({}, async ({ blobs, clock, afterPowerLoss }) => {
      const early = await put(blobs, "early", 60_000);
      await blobs.pin([early], 5_000);
      for (let i = 0; i < 8; i += 1) await put(blobs, `between ${i}`, 60_000);
      await blobs.pin([early], 600_000);
      await clock.advance(300_000);
      await afterPowerLoss(async (store, left) => {
        await store.upkeep.evict(0);
        await checkAll(left, [early]);
      });
    }));

  test("a pin waits for the segments of its blobs and of its own record", async () => {
    const slow = Promise.withResolvers<void>();
    const isFirst = (path: string) => path.endsWith("00000001.log");
    const afterSync = (path: string) => (isFirst(path) ? slow.promise : Promise.resolve());
    await withRig({ afterSync }, async ({ blobs, image }) => {
      const early = await put(blobs, "early", 60_000);
      for (let i = 0; i < 5; i += 1) await put(blobs, `later ${i}`, 60_000);
      let isTold = false;
      const pinning = blobs.pin([early], 600_000).then(() => (isTold = true));
      await until("the record is synced", () => image.seen.some((path) => path.endsWith("00000002.log")));
      for (let i = 0; i < 20; i += 1) await new Promise(setImmediate);
      equal(isTold, false, "the segment of the blob is not");
      slow.resolve();
      await pinning;
    });
  });

  test("a pin made during a sync waits for one that began after it", async () => {
    const slow = Promise.withResolvers<void>();
    let syncs = 0;
    const afterSync = () => ((syncs += 1) === 1 ? slow.promise : Promise.resolve());
    await withRig({ afterSync }, async ({ blobs, afterPowerLoss }) => {
      const one = await put(blobs, "one", 20_000);
      const first = blobs.pin([one], 600_000);
      await until("the first sync has begun", () => syncs === 1);
      const two = await put(blobs, "two", 20_000);
      const second = blobs.pin([two], 600_000);
      for (let i = 0; i < 20; i += 1) await new Promise(setImmediate);
      slow.resolve();
      await Promise.all([first, second]);
      await afterPowerLoss(async (_, left) => await checkAll(left, [one, two]));
    });
  });

  test("with sync: synced, all acknowledged blobs, names and grants are there", () =>
    withRig({ sync: "synced" }, async ({ store, blobs, afterPowerLoss }) => {
      const written: Digest[] = [];
      for (let i = 0; i < 10; i += 1) {
        written.push(await put(blobs, `packed ${i}`, 50_000));
        if (i % 3 === 0) written.push(await put(blobs, `large ${i}`, 300_000));
        await afterPowerLoss(async (_, left) => await checkAll(left, written));
      }
      const key = { tenant, space: "ac", name: "a" };
      const entry = { digest: written[0] ?? "", principal: "ann", atMs: 5 };
      await store.index.put(key, entry);
      await put(store.forTenant("other").blobs, "large 0", 300_000);
      await afterPowerLoss(async (left) => {
        equal((await left.index.get(key))?.digest, written[0]);
        await checkAll(left.forTenant("other").blobs, written.slice(1, 2));
      });
    }));

  test("with sync: synced, concurrent packed blobs are there once acknowledged, in any segment", () =>
    withRig({ sync: "synced" }, async ({ blobs, afterPowerLoss }) => {
      const told = await Promise.all(Array.from({ length: 12 }, (_, i) => put(blobs, `at once ${i}`, 50_000)));
      await afterPowerLoss(async (_, left) => await checkAll(left, told));
    }));

  test("with sync: synced, concurrent large blobs are there once acknowledged", () =>
    withRig({ sync: "synced" }, async ({ blobs, afterPowerLoss }) => {
      const told: Digest[] = [];
      await Promise.all(
        Array.from({ length: 12 }, async (_, i) => told.push(await put(blobs, `at once ${i}`, 200_000))),
      );
      await afterPowerLoss(async (_, left) => await checkAll(left, told));
    }));

  test("compaction loses nothing that was pinned, whenever the power fails", () =>
    withRig({}, async ({ store, blobs, clock, image, afterPowerLoss }) => {
      const pinned: Digest[] = [];
      for (let i = 0; i < 20; i += 1) {
        await put(blobs, `loose ${i}`, 30_000);
        pinned.push(await put(blobs, `pinned ${i}`, 20_000));
      }
      await blobs.pin(pinned, 600_000);
      await clock.advance(10_000);
      let syncs = 0;
      const checks: Promise<void>[] = [];
      image.onSync = () => {
        syncs += 1;
        if (syncs <= 8) checks.push(afterPowerLoss(async (_, left) => await checkAll(left, pinned)));
      };
      await store.upkeep.evict(0);
      image.onSync = () => {};
      await Promise.all(checks);
      ok(syncs > 0, "something was compacted");
      ok((await store.upkeep.stat()).evictedBlobs >= 20);
      await afterPowerLoss(async (left, leftBlobs) => {
        await left.upkeep.evict(0);
        await checkAll(leftBlobs, pinned);
      });
    }));

  test("copies that compaction makes are durable before the old segment is removed", () =>
    withRig({}, async ({ store, blobs, clock, afterPowerLoss }) => {
      const pinned = await put(blobs, "pinned", 1_000);
      await blobs.pin([pinned], 600_000);
      for (let i = 0; i < 5; i += 1) await put(blobs, `loose ${i}`, 60_000);
      await clock.advance(10_000);
      await store.upkeep.evict(0);
      await afterPowerLoss(async (_, left) => await checkAll(left, [pinned]));
    }));

  test("a checkpoint is complete and durable, or the previous one counts", () =>
    withRig({}, async ({ store, blobs, clock, afterPowerLoss }) => {
      const pinned = [await put(blobs, "pinned", 50_000), await put(blobs, "pinned large", 300_000)];
      await blobs.pin(pinned, 600_000);
      await clock.advance(10_000);
      await store.close(); // writes a checkpoint
      await afterPowerLoss(async (left, leftBlobs) => {
        ok(left.recovered.fromCheckpoint);
        equal(left.recovered.lost, 0);
        await checkAll(leftBlobs, pinned);
      });
    }));

  test("B8: acknowledged bytes of a stream can be read, and a sealed one stays sealed", () =>
    withRig({}, async ({ store, afterPowerLoss }) => {
      const key = { tenant, task: "t1", token: 1, name: "stdout" };
      const other = { ...key, task: "t2" };
      await store.streams.append(key, 0, Buffer.from("hello "));
      await store.streams.append(key, 6, Buffer.from("mill"));
      await store.streams.append(other, 0, Buffer.from("done"));
      await store.streams.append(other, 4, Buffer.from("."));
      const sealed = await store.streams.seal(other);
      await afterPowerLoss(async (left) => {
        deepEqual(await left.streams.state(key), { sizeBytes: 10 });
        let text = "";
        const enough = new AbortController();
        for await (const piece of left.streams.read(key, 0, enough.signal)) {
          text += Buffer.from(piece).toString();
          if (text.length >= 10) enough.abort();
        }
        equal(text, "hello mill");
        deepEqual(await left.streams.state(other), { sizeBytes: 5, sealed });
      });
    }));
});
