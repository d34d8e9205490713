/** Many readers of one fetch, as a property: for all sizes, ranges and times of leaving. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { readThrough } from "./read-through.ts";
import { HeldStore } from "./testing/held-store.ts";

const reader = fc.record({
  offset: fc.nat({ max: 1_000 }),
  length: fc.option(fc.nat({ max: 1_000 }), { nil: undefined }),
  /** The number of parts after which it stops reading. */
  leavesAfter: fc.option(fc.nat({ max: 5 }), { nil: undefined }),
});

const journey = fc.record({
  blob: fc.uint8Array({ maxLength: 1_000 }),
  partBytes: fc.integer({ min: 1, max: 400 }),
  windowBytesMax: fc.integer({ min: 1, max: 1_200 }),
  nearBytesMax: fc.constantFrom(0, 10_000),
  readers: fc.array(reader, { minLength: 1, maxLength: 8 }),
});

test("Q1, Q2: every reader gets exactly its range, or the beginning of it until it left", async () => {
  await fc.assert(
    fc.asyncProperty(journey, async ({ blob, partBytes, windowBytesMax, nearBytesMax, readers }) => {
      const memory = (sizeBytesMax: number) => createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax });
      const farInner = memory(10_000);
      const held = new HeldStore();
      held.partBytes = partBytes;
      const near = memory(nearBytesMax);
      const blobs = readThrough({ near, far: held.over(farInner), whenDead: "refuse", windowBytesMax });
      const digest = digestOf(blob);
      await farInner.write(digest, blob);
      const reading = readers.map(async ({ offset, length, leavesAfter = Infinity }) => {
        const from = Math.min(offset, blob.length);
        const wanted = blob.subarray(from, length === undefined ? undefined : from + length);
        const got: Uint8Array[] = [];
        let parts = 0;
        let hasLeft = false;
        for await (const part of blobs.read(digest, { offset: from, ...(length !== undefined && { length }) })) {
          got.push(Uint8Array.from(part));
          part.fill(0); // a reader may change its own copy
          parts += 1;
          if ((hasLeft = parts > leavesAfter)) break;
        }
        const all = Buffer.concat(got);
        if (!hasLeft) equal(all.length, wanted.length);
        deepEqual(all, Buffer.from(wanted.subarray(0, all.length)));
      });
      await Promise.all(reading);
      ok(held.calls.filter((call) => call === "read").length <= 2 * readers.length);
    }),
    { numRuns: 300 },
  );
});
