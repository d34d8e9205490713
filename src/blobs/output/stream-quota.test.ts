import { deepEqual, match, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";
import { exerciseStreams } from "#blobs/testing/streams.ts";
import { memorySegments } from "#blobs/tiers/streams/memory-segments.ts";
import { segmentStreams } from "#blobs/tiers/streams/segment-streams.ts";
import { withStreamQuota } from "./stream-quota.ts";

const clock = new ManualClock();
const never = new AbortController().signal;
const keyOf = (task: string, tenant = "mill"): StreamKey => ({ tenant, task, token: 1, name: "output" });
const row = (letter: string, length: number): Buffer => Buffer.alloc(length, letter);

function rig(tenantBytesMax = 1_000) {
  const blobs = createMemoryBlobs({ clock, sizeBytesMax: 10_000_000 });
  const inner = segmentStreams({ segments: memorySegments(10_000_000), clock, blobsOf: () => blobs });
  const cut: string[] = [];
  const open = (): Streams =>
    withStreamQuota(inner, { clock, tenantBytesMax, onCut: ({ task }) => void cut.push(task) });
  return { streams: open(), open, blobs, cut };
}

async function stored(streams: Streams, key: StreamKey): Promise<string> {
  await streams.seal(key);
  let text = "";
  for await (const part of streams.read(key, 0, never)) text += Buffer.from(part).toString();
  return text;
}

exerciseStreams("withStreamQuota", async () => rig(1_000_000));

test("a stream beyond its tenant's quota ends with a line that says so, and the writer goes on", async () => {
  const { streams, cut } = rig();
  await streams.append(keyOf("a"), 0, row("a", 600));
  await streams.append(keyOf("b"), 0, row("b", 300));
  await streams.append(keyOf("b"), 300, row("c", 300));
  await streams.append(keyOf("b"), 600, row("d", 300));
  deepEqual(cut, ["b"]);
  const text = await stored(streams, keyOf("b"));
  match(text, /^b{300}\n\S+Z \* w output beyond this is not kept: the tenant has 1000B .*tenantOutputMax\)\n$/);
  await streams.append(keyOf("c", "other"), 0, row("e", 900));
  deepEqual(cut, ["b"], "another tenant has its own");
});

test("streams that were removed, or not written for long, count no more", async () => {
  const { streams, cut } = rig();
  await streams.append(keyOf("a"), 0, row("a", 900));
  await streams.remove(keyOf("a"));
  await streams.append(keyOf("b"), 0, row("b", 900));
  await clock.advance(700_000);
  await streams.append(keyOf("c"), 0, row("c", 900));
  deepEqual(cut, []);
});

test("a piece that is sent again counts once, and one that failed not at all", async () => {
  const { streams, cut } = rig();
  for (let n = 0; n < 5; n += 1) await streams.append(keyOf("a"), 0, row("a", 900));
  await rejects(streams.append(keyOf("a"), 950, row("x", 10)), (error) => isFault(error, "invalid"));
  await streams.append(keyOf("a"), 900, row("b", 90));
  deepEqual(cut, []);
});

test("a writer goes on after a restart of its node, whether its stream was cut or not", async () => {
  const { streams, open, cut } = rig();
  await streams.append(keyOf("a", "other"), 0, row("a", 600));
  await streams.append(keyOf("b"), 0, row("b", 600));
  await streams.append(keyOf("b"), 600, row("c", 600));
  await streams.append(keyOf("b"), 1_200, row("d", 600));
  const again = open();
  await again.append(keyOf("b"), 1_800, row("e", 100));
  await again.append(keyOf("b"), 1_900, row("f", 100));
  await again.append(keyOf("a", "other"), 600, row("f", 300));
  await again.append(keyOf("a", "other"), 900, row("g", 300));
  deepEqual(cut, ["b", "a"]);
  match(await stored(again, keyOf("b")), /^b{600}\n\S+ \* w output [^\n]+\n$/);
  match(await stored(again, keyOf("a", "other")), /^a{600}f{300}\n\S+ \* w output [^\n]+\n$/);
});
