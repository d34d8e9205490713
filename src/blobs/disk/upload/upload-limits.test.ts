/** What unfinished uploads may take of the store: the bytes that arrived, within limits per tenant and per caller. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { isFault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import { uploadSharesDefault } from "#blobs/upload-limits.ts";
import { diskRig, type DiskRig } from "#blobs/disk/testing/disk.ts";

const MiB = 1024 * 1024;
const announced = (bytes: number, n = 0) => `${String(n).padStart(64, "a")}/${bytes}`;

test("an upload takes space for the bytes that arrived, not for its announced size, also after a restart", async () => {
  const rig = await diskRig({ sizeBytesMax: 256 * MiB });
  try {
    const { uploads } = rig.store.forTenant("greedy");
    const emptyBytes = rig.store.upkeep.figures().usedBytes;
    for (let n = 0; n < 5; n += 1) {
      const upload = await uploads.open({ uuid: `u${n}`, digest: announced(90 * MiB, n) }, 0);
      await upload.append(Buffer.alloc(22));
      await upload.suspend();
    }
    equal(rig.store.upkeep.figures().usedBytes - emptyBytes, 5 * 22);
    const write = async (fill: string) => {
      const whole = Buffer.alloc(60 * MiB, fill);
      await rig.store.forTenant("other").blobs.write(digestOf(whole), whole);
    };
    await write("a");
    await rig.reopen();
    await write("b");
    ok((await rig.store.upkeep.stat()).reservedBytes <= 5 * 22);
  } finally {
    await rig.dispose();
  }
});

const refusedBy = (limit: string) => (error: unknown) =>
  isFault(error, "exhausted") &&
  error.facts["limit"] === limit &&
  Number(error.facts["retryAfterMs"]) > 0 &&
  String(error.facts["why"]).includes(String(error.facts["max"]));

async function started(rig: DiskRig, tenant: string, caller: string, n: number, bytes = 22) {
  const { uploads } = rig.store.forTenant(tenant);
  const upload = await uploads.open({ uuid: `${caller} ${n}`, digest: announced(8 * MiB, n) }, 0, { caller });
  await upload.append(Buffer.alloc(bytes)).catch(async (error: unknown) => {
    await upload.suspend();
    throw error;
  });
  return upload;
}

async function suspended(...given: Parameters<typeof started>): Promise<void> {
  const upload = await started(...given);
  await upload.suspend();
}

test("announcing a large blob evicts nothing", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, sizeBytesMax: 64 * MiB, promisedMs: 1_000 });
  try {
    const { blobs } = rig.store.forTenant("mill");
    for (const text of ["old", "older"]) {
      const old = Buffer.alloc(15 * MiB, text);
      await blobs.write(digestOf(old), old);
    }
    await clock.advance(60_000);
    const { uploads } = rig.store.forTenant("greedy");
    const upload = await uploads.open({ uuid: "u", digest: announced(27 * MiB) }, 0);
    await upload.append(Buffer.alloc(22));
    equal((await rig.store.upkeep.stat()).evictedBlobs, 0);
    await upload.suspend();
  } finally {
    await rig.dispose();
  }
});

test("the number of unfinished uploads is limited for a caller, a tenant and all, also after a restart", async () => {
  const uploadShares = { ...uploadSharesDefault, countCaller: 3, countTenant: 5, countAll: 7 };
  const rig = await diskRig({ uploadShares });
  try {
    for (let n = 0; n < 3; n += 1) await suspended(rig, "mill", "ann", n);
    await rejects(started(rig, "mill", "ann", 3), refusedBy("uploads-per-caller"));
    for (let n = 0; n < 2; n += 1) await suspended(rig, "mill", "bob", n);
    await rig.reopen();
    await rejects(started(rig, "mill", "ann", 3), refusedBy("uploads-per-caller"));
    await rejects(started(rig, "mill", "bob", 3), refusedBy("uploads-per-tenant"));
    for (let n = 0; n < 2; n += 1) await suspended(rig, "farm", "cid", n);
    await rejects(started(rig, "yard", "dan", 0), refusedBy("uploads"));
    await suspended(rig, "mill", "ann", 1); // resuming one does not count as another
  } finally {
    await rig.dispose();
  }
});

test("the bytes of unfinished uploads are limited for a caller, a tenant and all, also after a restart", async () => {
  const uploadShares = { ...uploadSharesDefault, caller: 0.25, tenant: 0.35, all: 0.5 };
  const rig = await diskRig({ sizeBytesMax: 36 * MiB, uploadShares }); // 32 MiB and the store's own needs
  try {
    await suspended(rig, "mill", "ann", 0, 5 * MiB);
    await rejects(started(rig, "mill", "ann", 1, 5 * MiB), refusedBy("uploads-per-caller"));
    await suspended(rig, "mill", "bob", 0, 4 * MiB);
    await rig.reopen();
    await rejects(started(rig, "mill", "ann", 2, 5 * MiB), refusedBy("uploads-per-caller"));
    await rejects(started(rig, "mill", "bob", 2, 4 * MiB), refusedBy("uploads-per-tenant"));
    await suspended(rig, "farm", "cid", 0, 5 * MiB);
    await rejects(started(rig, "yard", "dan", 0, 6 * MiB), refusedBy("uploads"));
    const whole = Buffer.alloc(5 * MiB, "small enough");
    await rejects(rig.store.forTenant("yard").blobs.write(digestOf(whole), whole), refusedBy("uploads"));
    const small = Buffer.alloc(50_000, "packed"); // uploads may not take the rest of the store
    await rig.store.forTenant("yard").blobs.write(digestOf(small), small);
    const { uploads } = rig.store.forTenant("yard");
    await rejects(
      uploads.open({ uuid: "u", digest: announced(20 * MiB) }, 0, { caller: "dan" }),
      (e) => isFault(e, "exhausted") && e.facts["retryAfterMs"] === undefined,
      "retrying would never help",
    );
  } finally {
    await rig.dispose();
  }
});

test("idle uploads are dropped in minutes if space is short, and kept for a day if not", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, sizeBytesMax: 36 * MiB, promisedMs: 3_600_000 });
  try {
    for (const caller of ["ann", "bob"]) await suspended(rig, "greedy", caller, 0, 6 * MiB);
    const trickling = await started(rig, "greedy", "cid", 0, 3 * MiB); // a connection without progress
    await clock.advance(6 * 60_000);
    equal((await rig.store.upkeep.stat()).reservedBytes, 15 * MiB, "there is space");
    const fresh = await started(rig, "mill", "eve", 0, MiB);
    for (let i = 0; i < 300; i += 1) {
      const packed = Buffer.alloc(60_000, `packed ${i}`);
      await rig.store.forTenant("mill").blobs.write(digestOf(packed), packed);
    }
    ok((await rig.store.upkeep.stat()).reservedBytes <= 2 * MiB, "idle ones were dropped for new bytes");
    await rejects(trickling.append(Buffer.alloc(1)), (e) => isFault(e, "stale"));
    await trickling.suspend();
    await fresh.append(Buffer.alloc(1));
    await fresh.suspend();
    deepEqual(await rig.store.forTenant("greedy").uploads.committed({ uuid: "ann 0", digest: announced(8 * MiB) }), {
      sizeBytes: 0,
      complete: false,
    });
    equal(readdirSync(join(rig.root, "uploads")).length, 1);
  } finally {
    await rig.dispose();
  }
});

test("an upload beyond its owner's limit replaces an idle one of the same owner", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, uploadShares: { ...uploadSharesDefault, countCaller: 2 } });
  try {
    await suspended(rig, "mill", "ann", 0);
    await suspended(rig, "mill", "bob", 0);
    await clock.advance(4 * 60_000);
    await suspended(rig, "mill", "ann", 1);
    await rejects(started(rig, "mill", "ann", 2), (e) => isFault(e) && e.facts["retryAfterMs"] === 60_000);
    await clock.advance(61_000);
    await suspended(rig, "mill", "ann", 2);
    const kept = async (tenant: string, uuid: string, n: number) =>
      (await rig.store.forTenant(tenant).uploads.committed({ uuid, digest: announced(8 * MiB, n) })).sizeBytes;
    deepEqual([await kept("mill", "ann 0", 0), await kept("mill", "ann 1", 1)], [0, 22]);
    equal(await kept("mill", "bob 0", 0), 22, "uploads of others stay");
  } finally {
    await rig.dispose();
  }
});

test("an upload without a byte leaves nothing, and temporary files of a killed process are removed", async () => {
  const rig = await diskRig();
  try {
    const { uploads } = rig.store.forTenant("mill");
    const upload = await uploads.open({ uuid: "u", digest: announced(8 * MiB) }, 0);
    await upload.suspend();
    const folder = join(rig.root, "uploads");
    deepEqual([(await rig.store.upkeep.stat()).reservedBytes, readdirSync(folder)], [0, []]);
    await rig.store.close();
    for (const name of ["once-1", `${"a".repeat(64)}.5.zst`]) writeFileSync(join(folder, name), "left behind");
    writeFileSync(join(folder, `${"b".repeat(64)}.90`), "of an older version");
    await rig.reopen();
    deepEqual(readdirSync(folder), [`${"b".repeat(64)}.90`]);
  } finally {
    await rig.dispose();
  }
});
