import { deepEqual, equal, rejects } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { exerciseIndex, type IndexRig } from "#blobs/testing/index.ts";
import { exerciseStreams, type StreamsRig } from "#blobs/testing/streams.ts";
import { exerciseUploads, type UploadsRig } from "#blobs/testing/uploads.ts";
import { exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { openDiskStore } from "./open.ts";
import { diskRig, quietClock, type DiskRig } from "./testing/disk.ts";

for (const compression of ["none", "zstd"] as const)
  for (const packedBytesMax of [64 * 1024, 0]) {
    const how = `the disk store (${packedBytesMax === 0 ? "files" : "packed"}, compression: ${compression})`;
    exerciseBlobs(how, async () => {
      const rig = await diskRig({ compression, packedBytesMax });
      return { blobs: rig.store.forTenant("mill").blobs, dispose: () => rig.dispose() };
    });
    exerciseUploads(how, async () => uploadsRig(await diskRig({ compression, packedBytesMax })));
  }

const uploadsRig = (rig: DiskRig): UploadsRig => ({
  ...rig.store.forTenant("mill"),
  reopened: async () => {
    await rig.reopen();
    return { ...rig.store.forTenant("mill") };
  },
  dispose: () => rig.dispose(),
});

exerciseIndex("the disk store", async () => indexRig(await diskRig()));

const indexRig = (rig: DiskRig): IndexRig => ({
  index: rig.store.index,
  reopened: async () => {
    await rig.reopen();
    return { index: rig.store.index };
  },
  dispose: () => rig.dispose(),
});

exerciseStreams("the disk store", async () => streamsRig(await diskRig()));

const streamsRig = (rig: DiskRig): StreamsRig => ({
  streams: rig.store.streams,
  blobs: rig.store.forTenant("mill").blobs,
  reopened: async () => {
    await rig.reopen();
    return { streams: rig.store.streams, blobs: rig.store.forTenant("mill").blobs };
  },
  dispose: () => rig.dispose(),
});

test("a store belongs to one process at a time", async () => {
  const rig = await diskRig();
  await rejects(openDiskStore(rig.root, { clock: quietClock }), (e) => isFault(e, "exhausted"));
  await rig.dispose();
});

test("blobs are there after a restart, from the checkpoint and from the log alone", async () => {
  const rig = await diskRig();
  const { blobs } = rig.store.forTenant("mill");
  const digests = [];
  for (let i = 0; i < 300; i += 1) digests.push(await put(blobs, `blob ${i}`));
  digests.push(await put(blobs, "x".repeat(200_000)));
  for (const isClean of [true, false]) {
    if (isClean) await rig.reopen();
    const again = rig.store.forTenant("mill").blobs;
    deepEqual(await again.missing(digests), []);
    equal(await text(again.read(digests[17] ?? "")), "blob 17");
    equal(await text(again.read(digests[300] ?? "")), "x".repeat(200_000));
  }
  await rig.dispose();
});

/** A process that still writes to a store that it closed: one line of output for each write. */
const lateWriter = `
  import { diskRig } from "#blobs/disk/testing/disk.ts";
  import { sha256Digest } from "#blobs/sha256.ts";
  const rig = await diskRig();
  const { blobs } = rig.store.forTenant("mill");
  await rig.dispose();
  const told = async (work) => console.log(await work.then(() => "written", (error) => error.code));
  for (const late of [new Uint8Array(10), new Uint8Array(200_000)]) await told(blobs.write(sha256Digest(late), late));
`;

test("writes after the close are refused, and keep no process alive", () => {
  const { stdout, signal } = spawnSync(process.execPath, ["--input-type=module-typescript", "--eval", lateWriter], {
    cwd: join(import.meta.dirname, "../../.."),
    encoding: "utf8",
    timeout: 60_000,
  });
  equal(stdout, "unavailable\nunavailable\n");
  equal(signal, null);
});
