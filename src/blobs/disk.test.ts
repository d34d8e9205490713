import { deepEqual, equal } from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openDiskBlobs } from "./disk.ts";
import { exerciseBlobs, put, text } from "./exercise.ts";

const fresh = (): Promise<string> => mkdtemp(join(tmpdir(), "millrace-blobs-"));

exerciseBlobs("the disk store", async () => {
  const root = await fresh();
  return { blobs: await openDiskBlobs(root), dispose: () => rm(root, { recursive: true }) };
});

test("blobs outlive the process that wrote them, and half-written ones do not", async () => {
  const root = await fresh();
  try {
    const digest = await put(await openDiskBlobs(root), "still here");
    await writeFile(join(root, "tmp", "half"), "hal");
    const again = await openDiskBlobs(root);
    deepEqual(await readdir(join(root, "tmp")), []);
    equal(await text(again.read(digest)), "still here");
  } finally {
    await rm(root, { recursive: true });
  }
});
