import { deepEqual, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { bytes, exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { metered } from "./metered.ts";

const memory = () => createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 4 * 1024 * 1024 });

exerciseBlobs("a metered store", async () => ({ blobs: metered(memory(), new ManualClock(), () => {}) }));

test("every call is counted once, with its bytes and how it ended", async () => {
  const calls: string[] = [];
  const blobs = metered(memory(), new ManualClock(), (c) => calls.push(`${c.call} ${c.outcome} ${c.bytes} ${c.count}`));
  const digest = await put(blobs, "grain");
  await text(blobs.read(digest));
  for await (const _ of blobs.read(digest)) break;
  await rejects(text(blobs.read(digestOf(bytes("none")))), (e) => isFault(e, "not-found"));
  await rejects(blobs.write(digestOf(bytes("x")), bytes("y")), (e) => isFault(e, "invalid"));
  await blobs.missing([digest, digest]);
  await blobs.pin([digest], 5);
  deepEqual(calls, [
    "write ok 5 1",
    "read ok 5 1",
    "read left 5 1",
    "read not-found 0 1",
    "write invalid 1 1",
    "missing ok 0 2",
    "pin ok 0 1",
  ]);
});
