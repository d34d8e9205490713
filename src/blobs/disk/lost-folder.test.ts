/** The folder is removed or replaced under an open store: no write is acknowledged from then on. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { until } from "#testing/until.ts";
import { lockStore } from "./lock.ts";
import { diskRig, type DiskRig } from "./testing/disk.ts";

const isLost = (e: unknown): boolean => isFault(e, "unavailable") && /removed or replaced/.test(e.message);

async function put(blobs: BlobStore, seed: string, sizeBytes = 1_000) {
  const bytes = Buffer.alloc(sizeBytes, seed);
  await blobs.write(digestOf(bytes), bytes);
  return digestOf(bytes);
}

async function checkRefused({ store }: DiskRig, kept: string): Promise<void> {
  const { blobs, uploads } = store.forTenant("mill");
  await rejects(put(blobs, "small"), isLost);
  await rejects(put(blobs, "again"), isLost);
  await rejects(put(blobs, "large", 300_000), isLost);
  await rejects(blobs.pin([kept], 1_000), isLost);
  await rejects(uploads.open({ uuid: "u", digest: digestOf(Buffer.alloc(300_000)) }, 0), isLost);
  await rejects(
    store.index.put({ tenant: "mill", space: "s", name: "n" }, { digest: kept, principal: "p", atMs: 1 }),
    isLost,
  );
  const stream = { tenant: "mill", task: "t", token: 1, name: "stdout" };
  await rejects(store.streams.append(stream, 0, Buffer.from("x")), isLost);
}

for (const what of ["", "log"])
  test(`rm -rf of ${what === "" ? "the whole folder" : `its ${what}`}: the next write and all later ones are refused`, async () => {
    const reports: string[] = [];
    let lost = 0;
    const rig = await diskRig({
      report: (line, { why }) => reports.push(`${line}: ${why}`),
      onLost: () => (lost += 1),
    });
    const kept = await put(rig.store.forTenant("mill").blobs, "kept");
    rmSync(join(rig.root, what), { recursive: true });
    await checkRefused(rig, kept);
    equal(lost, 1, "reported once");
    match(reports.join("\n"), /removed or replaced/);
    await rig.store.close();
    ok(!existsSync(join(rig.root, "log")), "and it is not created again");
    rmSync(rig.root, { recursive: true, force: true });
  });

for (const sync of ["written", "synced"] as const)
  test(`a folder that was moved away or replaced is noticed within seconds (sync: ${sync})`, async () => {
    const clock = new ManualClock(10_000_000);
    let lost = 0;
    const rig = await diskRig({ clock, sync, onLost: () => (lost += 1) });
    const kept = await put(rig.store.forTenant("mill").blobs, "kept");
    renameSync(rig.root, `${rig.root}-away`);
    mkdirSync(rig.root);
    const unlockOther = lockStore(rig.root); // of another node, which started there meanwhile
    await clock.advance(1_500);
    await until("it is noticed", () => lost === 1);
    await checkRefused(rig, kept);
    await rig.store.close();
    ok(existsSync(join(rig.root, "in-use-by")), "the other's lock stays");
    unlockOther.unlock();
    deepEqual([existsSync(join(rig.root, "in-use-by")), existsSync(join(rig.root, "checkpoint"))], [false, false]);
    for (const path of [rig.root, `${rig.root}-away`]) rmSync(path, { recursive: true });
  });
