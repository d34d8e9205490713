import { deepEqual, equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { createMemoryBlobs } from "./memory.ts";

exerciseBlobs("the memory store", async () => ({
  blobs: createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 4 * 1024 * 1024 }),
}));

test("a full store evicts the blob that was unused the longest", async () => {
  const blobs = createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 12 });
  const [one, two, three] = [await put(blobs, "1111"), await put(blobs, "2222"), await put(blobs, "3333")];
  await text(blobs.read(one)); // now used more recently than the others
  await put(blobs, "4444");
  deepEqual(await blobs.missing([one, two, three]), [two]);
  equal(blobs.sizeBytes, 12);
});

test("B2: a pinned blob is neither evicted nor displaced before its time, and may be after it", async () => {
  const clock = new ManualClock();
  const blobs = createMemoryBlobs({ clock, sizeBytesMax: 8 });
  const kept = await put(blobs, "kept");
  await blobs.pin([kept], 1_000);
  await blobs.pin([kept], 10); // a shorter pin does not shorten an earlier one
  await put(blobs, "abcd");
  equal(blobs.evict(kept), false);
  await rejects(put(blobs, "too long"), (e) => isFault(e, "exhausted"));
  deepEqual(await blobs.missing([kept]), []);
  await clock.advance(1_000);
  equal(blobs.evict(kept), true);
  equal(blobs.evict(kept), false);
  deepEqual(await blobs.missing([kept]), [kept]);
});
