/** Short cuts on the way to a tier: an HTTP cache, healthy, slow, lying, broken. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { bytes, exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { createHttpCaller, type HttpCaller } from "./s3/http-call.ts";
import { httpCache } from "./http.ts";
import { readThrough } from "./read-through.ts";
import { withShortCuts } from "./short-cut.ts";
import { HeldStore } from "./testing/held-store.ts";

const MiB = 1024 * 1024;
const memory = () => createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 64 * MiB });

exerciseBlobs("a tier with a short cut that has nothing", async () => ({
  blobs: withShortCuts({ clock: new ManualClock(), far: memory(), shortCuts: () => [memory()] }),
}));

describe("an HTTP cache as a short cut", () => {
  const kept = new Map<string, Buffer>();
  const asked: string[] = [];
  let server: Server;
  let caller: HttpCaller;
  let behaves: "well" | "lies" | "breaks off" | "fails" = "well";

  before(async () => {
    server = createServer((request, response) => {
      asked.push(request.url ?? "");
      const found = kept.get(request.url ?? "");
      if (behaves === "fails") return void response.writeHead(500).end();
      if (!found) return void response.writeHead(404).end();
      response.setHeader("content-length", found.length);
      if (behaves === "breaks off") return void response.write(found.subarray(0, -1), () => response.destroy());
      response.end(behaves === "lies" ? Buffer.from(found.map((byte) => byte ^ 1)) : found);
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    caller = createHttpCaller({ connectionsMax: 8, idleMs: 1_000 });
  });
  after(() => {
    caller[Symbol.dispose]();
    server.closeAllConnections();
    server.close();
  });

  function rig() {
    const clock = new ManualClock();
    const farInner = memory();
    const held = new HeldStore();
    held.partBytes = 64 * 1024;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const shortCuts = [httpCache({ caller, url })];
    const blobs = withShortCuts({ clock, far: held.over(farInner), shortCuts: () => shortCuts });
    const reads = (): number => held.calls.filter((call) => call === "read").length;
    return { clock, farInner, held, blobs, reads };
  }
  const keep = (value: Buffer): void => void kept.set(`/cas/${digestOf(value).split("/")[0]}`, value);

  test("blobs of the HTTP cache come from it, all others from the tier", async () => {
    const { farInner, blobs, reads } = rig();
    const near = await put(farInner, "near");
    const far = await put(farInner, "far");
    keep(Buffer.from("near"));
    equal(await text(blobs.read(near)), "near");
    equal(reads(), 0);
    equal(await text(blobs.read(far)), "far");
    equal(reads(), 1);
  });

  test("B5: a blob that the tier does not have for this tenant is not found, although the cache has it", async () => {
    const { blobs } = rig();
    keep(Buffer.from("somebody else's"));
    asked.length = 0;
    await rejects(text(blobs.read(digestOf(bytes("somebody else's")))), (e) => isFault(e, "not-found"));
    deepEqual(asked, []);
  });

  test("B1: a short cut that lies, breaks off or fails is skipped for a while", async () => {
    for (const wrong of ["lies", "breaks off", "fails"] as const) {
      const { clock, farInner, blobs, reads } = rig();
      const digest = await put(farInner, `true ${wrong}`);
      keep(Buffer.from(`true ${wrong}`));
      behaves = wrong;
      equal(await text(blobs.read(digest)), `true ${wrong}`);
      behaves = "well";
      equal(await text(blobs.read(digest)), `true ${wrong}`);
      equal(reads(), 2, wrong);
      await clock.advance(30_001);
      equal(await text(blobs.read(digest)), `true ${wrong}`);
      equal(reads(), 2, "asked again, successfully");
    }
  });

  test("B1: a reader never gets the end of a wrong large blob; one that has its beginning gets an error", async () => {
    const { farInner, blobs } = rig();
    const large = randomBytes(5 * MiB);
    const digest = digestOf(large);
    await farInner.write(digest, large);
    keep(large);
    const above = readThrough({ near: memory(), far: blobs, whenDead: "refuse" });
    behaves = "lies";
    await rejects(text(above.read(digest)), (e) => isFault(e, "corrupt"));
    behaves = "well";
    ok((await whole(above.read(digest))).equals(large));
  });

  test("a correct large blob that breaks off continues from the tier", async () => {
    const { farInner, blobs, reads } = rig();
    const large = randomBytes(5 * MiB);
    const digest = digestOf(large);
    await farInner.write(digest, large);
    keep(large);
    behaves = "breaks off";
    ok((await whole(blobs.read(digest))).equals(large));
    behaves = "well";
    equal(reads(), 1);
  });
});

async function whole(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const got: Uint8Array[] = [];
  for await (const part of parts) got.push(Uint8Array.from(part));
  return Buffer.concat(got);
}
