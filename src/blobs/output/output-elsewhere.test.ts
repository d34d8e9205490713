// A tenant's live output is limited over all nodes: each adds what the others said a moment ago.
import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { StreamKey } from "#blobs/streams.ts";
import { memorySegments } from "#blobs/tiers/streams/memory-segments.ts";
import { segmentStreams } from "#blobs/tiers/streams/segment-streams.ts";
import { OutputElsewhere, type NodeOutput } from "./output-elsewhere.ts";
import { withStreamQuota, type LimitedStreams } from "./stream-quota.ts";

const tenantBytesMax = 1_000;
const keyOf = (task: string, tenant = "mill"): StreamKey => ({ tenant, task, token: 1, name: "output" });

/** Nodes with streams of their own; each reads the facts of all. */
function rig() {
  const clock = new ManualClock();
  const facts = new Map<string, { said: () => string | undefined; alive: boolean }>();
  const nodes = async (): Promise<readonly NodeOutput[]> =>
    [...facts].map(([node, { said, alive }]) => ({ node, alive, said: said() }));
  const open = (node: string) => {
    const blobs = createMemoryBlobs({ clock, sizeBytesMax: 10_000_000 });
    const inner = segmentStreams({ segments: memorySegments(10_000_000), clock, blobsOf: () => blobs });
    const cut: string[] = [];
    const streams: LimitedStreams = withStreamQuota(inner, {
      clock,
      tenantBytesMax,
      onCut: ({ task }) => void cut.push(task),
      elsewhere: (tenant) => elsewhere.of(tenant),
    });
    const elsewhere = new OutputElsewhere({ clock, tenantBytesMax, recent: () => streams.recent() });
    elsewhere.follow(nodes, node);
    facts.set(node, { said: () => elsewhere.fact, alive: true });
    return { streams, cut, elsewhere };
  };
  const look = async (): Promise<void> => {
    await clock.advance(3_000);
    await settle();
  };
  return { clock, facts, open, look };
}

const bytes = (length: number): Uint8Array => Buffer.alloc(length, "x");

test("what a tenant prints on two nodes counts together, and another tenant's does not", async () => {
  const { open, look } = rig();
  const [a, b] = [open("a"), open("b")];
  await a.streams.append(keyOf("one"), 0, bytes(600));
  await b.streams.append(keyOf("two"), 0, bytes(300));
  await look();
  deepEqual([a.elsewhere.of("mill"), b.elsewhere.of("mill")], [300, 600]);
  await b.streams.append(keyOf("two"), 300, bytes(300));
  deepEqual(b.cut, ["two"]);
  await b.streams.append(keyOf("three", "bakery"), 0, bytes(900));
  deepEqual([a.cut, b.cut], [[], ["two"]]);
});

test("nodes that are dead, say nothing or say nonsense count for nothing", async () => {
  const { open, look, facts } = rig();
  const [a, b] = [open("a"), open("b")];
  await a.streams.append(keyOf("one"), 0, bytes(900));
  await b.streams.append(keyOf("two"), 0, bytes(100));
  facts.set("a", { said: () => '{"mill":900}', alive: false });
  for (const said of [undefined, "", "null", "[1]", '{"mill":"much"}', '{"mill":-5}', "{"])
    facts.set(`odd ${said}`, { said: () => said, alive: true });
  await look();
  equal(b.elsewhere.of("mill"), 0);
});

test("a stream that is not written any more is not said, so that it counts once where it goes on", async () => {
  const { open, look, clock } = rig();
  const [a, b] = [open("a"), open("b")];
  await a.streams.append(keyOf("one"), 0, bytes(900));
  await look();
  equal(a.elsewhere.fact, '{"mill":900}');
  await clock.advance(30_000);
  equal(a.elsewhere.fact, undefined);
  await b.streams.append(keyOf("one"), 0, bytes(900));
  await look();
  equal(b.elsewhere.of("mill"), 0);
});

test("facts are small: notable tenants only, those with the most first, twenty of them", async () => {
  const { open } = rig();
  const { streams, elsewhere } = open("a");
  for (let n = 0; n < 30; n += 1) await streams.append(keyOf(`t${n}`, `tenant${n}`), 0, bytes(n + 1));
  const said = JSON.parse(elsewhere.fact ?? "{}") as Record<string, number>;
  deepEqual(Object.keys(said).length, 15, "below a 64th of the limit nothing is said");
  equal(Object.values(said)[0], 30);
  for (let n = 0; n < 30; n += 1) await streams.append(keyOf(`t${n}`, `tenant${n}`), n + 1, bytes(100));
  equal(Object.keys(JSON.parse(elsewhere.fact ?? "{}") as object).length, 20);
});
