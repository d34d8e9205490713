import { deepEqual, equal, rejects } from "node:assert/strict";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { openDiskBlobs } from "./disk.ts";
import { exerciseBlobs, put, text } from "./exercise.ts";

const fresh = (): Promise<string> => mkdtemp(join(tmpdir(), "millrace-blobs-"));

exerciseBlobs("the disk store", async () => {
  const root = await fresh();
  return { blobs: await openDiskBlobs(root), dispose: () => rm(root, { recursive: true }) };
});

test("blobs outlive the process that wrote them; half-written ones do not, once nobody can be at them", async () => {
  const root = await fresh();
  try {
    const digest = await put(await openDiskBlobs(root), "still here");
    for (const name of ["half", "another-node-is-at-it"]) await writeFile(join(root, "tmp", name), "hal");
    const longAgo = Date.now() / 1_000 - 7_200;
    await utimes(join(root, "tmp", "half"), longAgo, longAgo);
    const again = await openDiskBlobs(root);
    deepEqual(await readdir(join(root, "tmp")), ["another-node-is-at-it"]);
    equal(await text(again.read(digest)), "still here");
  } finally {
    await rm(root, { recursive: true });
  }
});

test("a disk that refuses is a Fault, and the store lives on", async () => {
  const root = await fresh();
  try {
    const blobs = await openDiskBlobs(root);
    await rm(join(root, "tmp"), { recursive: true });
    await rejects(put(blobs, "x"), (e) => isFault(e, "unavailable"));
    equal(await text((await openDiskBlobs(root)).read(await put(await openDiskBlobs(root), "x"))), "x");
  } finally {
    await rm(root, { recursive: true });
  }
});
