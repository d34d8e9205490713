import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf, hashHex } from "#blobs/hashing.ts";
import { put, text } from "#blobs/testing/exercise.ts";
import { until } from "#testing/until.ts";
import { diskRig, quietClock, type DiskRig } from "#blobs/disk/testing/disk.ts";

const filesOf = (rig: DiskRig, folder = "files"): readonly string[] =>
  readdirSync(join(rig.root, folder), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name));

const damages: Readonly<Record<string, (path: string) => void>> = {
  flipped(path) {
    const bytes = readFileSync(path);
    const at = Math.floor(bytes.length / 2);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  },
  truncated: (path) => truncateSync(path, readFileSync(path).length - 1),
  removed: (path) => rmSync(path),
};

const isGone = (error: unknown): boolean => isFault(error, "not-found");
/** Hardly compressible, so that its frames are most of the file. */
const large = Buffer.from(Array.from({ length: 3_000 }, (_, i) => hashHex("sha256", Buffer.from(`${i}`))).join(""));
const digest = digestOf(large);
/** A change within one tick of the file system's clock would leave the file's time as it is. */
const tick = (rig: DiskRig): Promise<void> => {
  const sinceMs = Math.max(...filesOf(rig).map((path) => statSync(path).ctimeMs));
  const probe = join(rig.root, "probe");
  return until("the file system's clock has moved on", () => {
    writeFileSync(probe, "");
    return statSync(probe).ctimeMs > sinceMs;
  });
};

for (const compression of ["none", "zstd"] as const)
  for (const [how, damage] of Object.entries(damages))
    for (const isStopped of [true, false])
      test(`a large file (${compression}) ${how} while ${isStopped ? "stopped" : "serving"}: no wrong byte, and an upload repairs it`, async (t) => {
        const rig = await diskRig({ compression });
        t.after(() => rig.dispose());
        await rig.store.forTenant("mill").blobs.write(digest, large);
        await rig.store.forTenant("mill").blobs.pin([digest], 1_000_000);
        await tick(rig);
        if (isStopped) await rig.store.close();
        damage(filesOf(rig)[0] ?? "");
        if (isStopped) await rig.reopen();
        const { blobs, uploads } = rig.store.forTenant("mill");
        // An upload of what is there repairs it, for all tenants and pins.
        const upload = await uploads.open({ uuid: "u", digest }, 0);
        equal((await uploads.committed({ uuid: "u", digest })).complete, false);
        await upload.append(large);
        await upload.finish();
        equal((await text(blobs.read(digest))).length, large.length);
        ok("digests" in (await blobs.pin([digest], 1_000)));
        // Without one, the damage is found by the first read of any kind, before its first byte.
        const reads = [
          async () => await text(blobs.read(digest)),
          async () => await text(blobs.read(digest, { offset: 150_000 })),
          async () => await text(blobs.read(digest, { offset: 10, length: 20 })),
          async () => await text(blobs.read(digest, { offset: 0 }, "zstd")),
          async () => {
            const lent = await blobs.file?.(digest);
            equal(lent, undefined);
            throw await text(blobs.read(digest)).catch((error: unknown) => error);
          },
        ];
        for (const read of isStopped ? reads.slice(0, 1) : reads) {
          await tick(rig);
          damage(filesOf(rig)[0] ?? "");
          await rejects(read(), isGone);
          deepEqual(await blobs.missing([digest]), [digest]);
          await blobs.write(digest, large);
        }
        equal((await text(blobs.read(digest))).length, large.length);
      });

test("a very large file that was not checked is sent while it is checked, and never ends if it is wrong", async (t) => {
  const rig = await diskRig();
  t.after(() => rig.dispose());
  const huge = Buffer.alloc(65 * 1024 * 1024, "grain ");
  const name = digestOf(huge);
  await rig.store.forTenant("mill").blobs.write(name, huge);
  await rig.reopen();
  let got = 0;
  for await (const part of rig.store.forTenant("mill").blobs.read(name)) got += part.length;
  equal(got, huge.length);
  await rig.store.close();
  damages["flipped"]?.(filesOf(rig)[0] ?? "");
  await rig.reopen();
  const { blobs } = rig.store.forTenant("mill");
  equal(await blobs.file?.(name), undefined, "not lent before it was checked");
  got = 0;
  const reading = async (): Promise<void> => {
    for await (const part of blobs.read(name)) got += part.length;
  };
  await rejects(reading(), (error) => isFault(error, "corrupt") || isFault(error, "not-found"));
  ok(got < huge.length, "the last piece is held back");
  deepEqual(await blobs.missing([name]), [name]);
});

test("a file is hashed once: later reads trust it, until it changes or the time is over", async (t) => {
  const time = new ManualClock(10_000_000);
  const clock = { ...quietClock, monotonicMs: () => time.monotonicMs(), wallMs: () => time.wallMs() };
  const reports: string[] = [];
  const rig = await diskRig({ clock, trustedMs: 60_000, report: (what) => reports.push(what) });
  t.after(() => rig.dispose());
  const { blobs } = rig.store.forTenant("mill");
  await blobs.write(digest, large);
  const checked = (): number => rig.store.upkeep.figures().checkedBytes;
  equal(checked(), 0);
  await text(blobs.read(digest));
  equal(checked(), 0, "what was hashed while it was written is trusted");
  await rig.reopen();
  const again = rig.store.forTenant("mill").blobs;
  await Promise.all([
    text(again.read(digest)),
    text(again.read(digest)),
    again.file?.(digest).then((f) => f?.release()),
  ]);
  equal(checked(), large.length, "the first readers after a start share one check");
  await text(again.read(digest));
  equal(checked(), large.length);
  await time.advance(61_000);
  await text(again.read(digest));
  equal(checked(), 2 * large.length);
  deepEqual(reports, []);
});

test("an upload repairs a packed blob that is damaged on the disk", async (t) => {
  const rig = await diskRig();
  t.after(() => rig.dispose());
  const name = await put(rig.store.forTenant("mill").blobs, "a needle in the stack");
  await rig.store.forTenant("mill").blobs.pin([name], 1_000_000);
  await rig.store.close();
  const [log = ""] = filesOf(rig, "log");
  const bytes = readFileSync(log);
  const at = bytes.indexOf("needle");
  bytes[at] = 0;
  writeFileSync(log, bytes);
  await rig.reopen();
  const { blobs } = rig.store.forTenant("mill");
  await put(blobs, "a needle in the stack");
  equal(await text(blobs.read(name)), "a needle in the stack");
  await rig.reopen();
  equal(await text(rig.store.forTenant("mill").blobs.read(name)), "a needle in the stack");
});

test("a whole record of another blob at the place of a blob is not taken for it", async (t) => {
  const rig = await diskRig();
  t.after(() => rig.dispose());
  const one = await put(rig.store.forTenant("mill").blobs, "one blob");
  const two = await put(rig.store.forTenant("mill").blobs, "two blob");
  await rig.store.close();
  const [log = ""] = filesOf(rig, "log");
  const bytes = readFileSync(log);
  const [first, second] = [bytes.indexOf("one blob"), bytes.indexOf("two blob")];
  const length = second - first;
  bytes.copy(bytes, first - 80, second - 80, second - 80 + length); // the second record in place of the first
  writeFileSync(log, bytes);
  await rig.reopen();
  const { blobs } = rig.store.forTenant("mill");
  await rejects(text(blobs.read(one)), isGone);
  equal(await text(blobs.read(two)), "two blob");
});
