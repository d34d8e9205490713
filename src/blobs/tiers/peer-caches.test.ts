/** Other nodes' disks as short cuts: which are asked, in which order, for what; their bytes are never trusted. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { put, text } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { HttpCaller } from "./s3/http-call.ts";
import { peerCaches, type PeerCachesOptions } from "./peer-caches.ts";
import { withShortCuts } from "./short-cut.ts";

const MiB = 1024 * 1024;

/** Fake nodes by host: their blobs, and how they misbehave. */
class Nodes {
  readonly has = new Map<string, Map<string, Buffer>>();
  readonly asked: string[] = [];
  readonly headers: Readonly<Record<string, string>>[] = [];
  readonly failing = new Set<string>();

  readonly caller: HttpCaller = {
    call: async ({ url, headers }) => {
      this.asked.push(url.host);
      this.headers.push(headers);
      const found = this.has.get(url.host)?.get(url.pathname);
      if (this.failing.has(url.host)) return { status: 500, headers: {}, body: bodyOf() };
      return found ? { status: 200, headers: {}, body: bodyOf(found) } : { status: 504, headers: {}, body: bodyOf() };
    },
    [Symbol.dispose]() {},
  };

  give(host: string, value: string, bytes = value): Digest {
    const digest = digestOf(Buffer.from(value));
    const held = this.has.get(host) ?? new Map<string, Buffer>();
    this.has.set(host, held.set(`/cas/${digest.split("/")[0]}`, Buffer.from(bytes)));
    return digest;
  }
}

async function* bodyOf(...parts: readonly Buffer[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

function rig(hosts: readonly string[], options: Partial<PeerCachesOptions> = {}) {
  const nodes = new Nodes();
  const present = [...hosts];
  let served = 0;
  const shortCuts = peerCaches({
    caller: nodes.caller,
    urls: () => present.map((host) => `http://${host}/`),
    sizeBytesMin: 1,
    served: () => (served += 1),
    ...options,
  });
  const clock = new ManualClock();
  const tier = createMemoryBlobs({ clock, sizeBytesMax: 8 * MiB });
  const blobs = withShortCuts({ clock, far: tier, shortCuts });
  return { nodes, present, tier, blobs, clock, served: () => served };
}

test("a node that served a blob is asked first from then on, and only for blobs on its own disk", async () => {
  const { nodes, tier, blobs, served } = rig(["a:1", "b:1", "c:1", "d:1"], { askedMax: 4, token: "secret" });
  for (const value of ["one", "two"]) {
    await put(tier, value);
    equal(await text(blobs.read(nodes.give("c:1", value))), value);
  }
  equal(served(), 2);
  equal(nodes.asked.at(-1), "c:1");
  equal(nodes.asked.filter((host) => host === "c:1").length, 2);
  ok(nodes.asked.length <= 5, "no other node was asked for the second blob");
  ok(nodes.headers.every((sent) => sent["cache-control"] === "only-if-cached"));
  ok(nodes.headers.every((sent) => sent["authorization"] === "Bearer secret"));
});

test("at most three nodes are asked, then the tier", async () => {
  const { nodes, tier, blobs, served } = rig(["a:1", "b:1", "c:1", "d:1", "e:1"], { askedMax: 2 });
  equal(await text(blobs.read(await put(tier, "only there"))), "only there");
  equal(nodes.asked.length, 2);
  equal(served(), 0);
});

test("small blobs, and blobs that the tier does not have, are not asked of nodes", async () => {
  const { nodes, tier, blobs } = rig(["a:1"], { sizeBytesMin: 100 });
  await put(tier, "small");
  equal(await text(blobs.read(nodes.give("a:1", "small"))), "small");
  const foreign = nodes.give("a:1", "x".repeat(200));
  await rejects(text(blobs.read(foreign)), (error) => isFault(error, "not-found"));
  deepEqual(nodes.asked, []);
});

test("B1: a node that lies or fails is skipped for a while; a node that left is not asked", async () => {
  const { nodes, present, tier, blobs, served, clock } = rig(["a:1", "b:1"]);
  const digest = await put(tier, "true");
  nodes.give("a:1", "true", "lies");
  nodes.failing.add("b:1");
  equal(await text(blobs.read(digest)), "true");
  equal(served(), 0);
  equal(nodes.asked.length, 2);
  equal(await text(blobs.read(digest)), "true");
  equal(nodes.asked.length, 2, "no node is asked for a while");
  await clock.advance(30_001);
  present.pop();
  nodes.give("a:1", "true");
  equal(await text(blobs.read(digest)), "true");
  equal(served(), 1);
  deepEqual(nodes.asked.slice(2), ["a:1"]);
});
