import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { pinEither } from "./pin-either.ts";

test("blobs of either store are pinned; blobs of neither are missing", async () => {
  const clock = new ManualClock();
  const [first, second] = [1, 2].map(() => createMemoryBlobs({ clock, sizeBytesMax: 1 << 20 }));
  if (!first || !second) throw new Error("two stores were made");
  const [flour, bread, lost] = ["flour", "bread", "lost"].map((word) => Buffer.from(word));
  if (!flour || !bread || !lost) throw new Error("three words were made");
  await first.write(digestOf(flour), flour);
  await second.write(digestOf(bread), bread);
  const either = pinEither(first, second);
  const both = [digestOf(flour), digestOf(bread)];
  deepEqual(await either.pin(both, 1_000), { digests: both, pinnedForMs: 1_000 });
  deepEqual(await either.pin([digestOf(bread)], 1_000), { digests: [digestOf(bread)], pinnedForMs: 1_000 });
  deepEqual(await either.pin([...both, digestOf(lost)], 1_000), { missing: [digestOf(lost)] });
});
