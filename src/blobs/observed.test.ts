import { deepEqual, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { bytes, exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { digestOf } from "./hashing.ts";
import { observed, type StoreObserver } from "./observed.ts";

const memory = () => createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 4 * 1024 * 1024 });

const listing = (calls: string[]): StoreObserver => ({
  begin: ({ name, count }) => ({ ended: (outcome, bytes) => calls.push(`${name} ${outcome} ${bytes} ${count}`) }),
  lent: (sizeBytes) => calls.push(`lent ${sizeBytes}`),
});

exerciseBlobs("an observed store", async () => ({ blobs: observed(memory(), listing([])) }));

test("every call is reported once, with its bytes and how it ended", async () => {
  const calls: string[] = [];
  const blobs = observed(memory(), listing(calls));
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

test("bytes from memory are reported only when there are some", async () => {
  const calls: string[] = [];
  const inner = memory();
  const blobs = observed(inner, listing(calls));
  const digest = await put(inner, "grain");
  blobs.prompt?.bytes(digest);
  blobs.prompt?.bytes(digestOf(bytes("none")));
  deepEqual(calls, ["lent 5"]);
});
