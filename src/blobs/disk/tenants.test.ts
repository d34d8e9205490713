import { deepEqual, equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { bytes, put, text } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import { diskRig } from "./testing/disk.ts";

const isGone = (e: unknown): boolean => isFault(e, "not-found");
const large = "x".repeat(100_000);

for (const [how, value] of [
  ["small", "a secret"],
  ["large", large],
] as const)
  test(`B5: a ${how} blob is visible to the tenants that uploaded it, and to no other; its bytes are stored once`, async () => {
    const rig = await diskRig();
    const names = Array.from({ length: 40 }, (_, i) => `tenant ${i}`);
    const [owner = "", ...others] = names;
    const digest = await put(rig.store.forTenant(owner).blobs, value);
    const { usedBytes } = await rig.store.upkeep.stat();
    const hash = Buffer.from(digest.slice(0, 64), "hex");
    for (const name of others) {
      const { blobs, uploads } = rig.store.forTenant(name);
      deepEqual(await blobs.missing([digest]), [digest], name);
      await rejects(text(blobs.read(digest)), isGone);
      deepEqual(await blobs.pin([digest], 1_000), { missing: [digest] });
      equal(blobs.prompt?.has("sha256", hash, 0, value.length), false);
      equal(blobs.prompt?.bytes(digest), undefined);
      deepEqual(await uploads.committed({ uuid: "u", digest }), { sizeBytes: 0, complete: false });
      // Knowing the digest is not enough to get the blob.
      await rejects(blobs.write(digest, bytes("y".repeat(value.length))), (e) => isFault(e, "invalid"));
      deepEqual(await blobs.missing([digest]), [digest], name);
    }
    for (const name of others.slice(20)) await put(rig.store.forTenant(name).blobs, value);
    for (let restarts = 0; restarts < 2; restarts += 1) {
      for (const [i, name] of names.entries()) {
        const isGiven = i === 0 || i > 20;
        deepEqual(await rig.store.forTenant(name).blobs.missing([digest]), isGiven ? [] : [digest], name);
      }
      await rig.reopen();
    }
    equal((await rig.store.upkeep.stat()).usedBytes - usedBytes < value.length + 20_000, true);
    equal(await text(rig.store.all.read(digest)), value, "the node itself sees everything");
    await rig.dispose();
  });

test("a blob that the node itself writes is visible to no tenant", async () => {
  const rig = await diskRig();
  const digest = await put(rig.store.all, "the node's own");
  deepEqual(await rig.store.forTenant("mill").blobs.missing([digest]), [digest]);
  await put(rig.store.forTenant("mill").blobs, "the node's own");
  equal(await text(rig.store.forTenant("mill").blobs.read(digest)), "the node's own");
  equal(digestOf(bytes("the node's own")), digest);
  await rig.dispose();
});

test("a lent file can be read after its blob was evicted, and not by other tenants (B5)", async () => {
  const clock = new ManualClock(1_000_000_000);
  const rig = await diskRig({ clock, promisedMs: 1_000 });
  const { blobs } = rig.store.forTenant("mill");
  const digest = await put(blobs, "grist ".repeat(50_000));
  equal(await rig.store.forTenant("other").blobs.file?.(digest), undefined);
  equal(rig.store.forTenant("other").blobs.prompt?.sizeOf?.("sha256", digest.slice(0, 64)), undefined);
  equal(blobs.prompt?.sizeOf?.("sha256", digest.slice(0, 64)), 300_000);
  const lent = await blobs.file?.(digest);
  await clock.advance(3_600_000);
  await rig.store.upkeep.evict(0);
  deepEqual(await blobs.missing([digest]), [digest]);
  equal(await blobs.file?.(digest), undefined);
  const got = Buffer.alloc(300_000);
  await lent?.file.readv([got], 0);
  equal(got.toString(), "grist ".repeat(50_000));
  await lent?.release();
  await rig.dispose();
});
