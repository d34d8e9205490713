import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf, hashHex } from "#blobs/hashing.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { completeStore, lostBy } from "#blobs/testing/complete-store.ts";
import { withEmpty } from "./empty-blobs.ts";

test("withEmpty keeps every method of the store inside", () => deepEqual(lostBy(withEmpty), []));

test("the empty blob is there in every answer, other blobs are as the store says", async () => {
  const empty = Buffer.alloc(0);
  const inner = createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 1_000 });
  const blobs = withEmpty({ ...inner, prompt: { ...completeStore.prompt, ...inner.prompt, hasMany: () => {} } });
  const other = digestOf(Buffer.from("grain"));
  deepEqual(await blobs.missing([digestOf(empty), other]), [other]);
  const { prompt } = blobs;
  equal(prompt?.sizeOf?.("sha256", hashHex("sha256", empty)), 0);
  equal(prompt?.sizeOf?.("sha256", hashHex("sha256", Buffer.from("grain"))), undefined);
  const found = new Uint8Array(2);
  const hashes = new Uint8Array(64);
  prompt?.hasMany?.("sha256", { hashes, sizes: Float64Array.of(5, 0), count: 2 }, found);
  deepEqual([...found], [0, 1]);
});
