/**
 * Readers that resume after an interruption, as Bazel does, through all layers of a fleet's node: what a reader has
 * collected is always a prefix of the blob, and in the end it is the whole blob.
 */
import { deepEqual, ok } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { realClock as clock } from "#testing/real-clock.ts";
import type { Digest } from "#base/digest.ts";
import { Random } from "#base/random.ts";
import { diskRig } from "#blobs/disk/testing/disk.ts";
import { digestOf } from "#blobs/hashing.ts";
import { uploadSharesDefault } from "#blobs/upload-limits.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { observed } from "#blobs/observed.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { breaker } from "#blobs/tiers/breaker.ts";
import { withShortCuts } from "#blobs/tiers/short-cut.ts";
import { brokenReads, type Mishap } from "#blobs/tiers/testing/broken-store.ts";
import { tieredStore } from "#blobs/tiers/tiered-store.ts";
import { verifyingReads } from "#blobs/tiers/verifying.ts";
import { unpacked } from "#blobs/zstd.ts";
import type { GrpcClient } from "#grpc/client.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { openDoor } from "#doors/build/testing/build.ts";

const KiB = 1024;
/**
 * Sizes around the thresholds that decide how a blob is stored and sent: in the log or a file, at once or in pieces,
 * cached or passed on.
 */
const sizes = [1, 123, 4 * KiB, 64 * KiB - 1, 64 * KiB, 64 * KiB + 1, 600 * KiB, 4 * KiB * KiB + 1];

type World = { readonly tier: readonly Mishap[]; readonly peer: readonly Mishap[]; readonly leaving: number };

/** Everything that was delivered is right, as far as it came. */
const honest: World = {
  tier: ["well", "well", "broken", "broken"],
  peer: ["well", "gone", "broken", "broken"],
  leaving: 0.1,
};

/** Corruption is detected after a part was delivered. Readers continue until they get the error. */
const lying: World = {
  tier: ["well", "well", "broken", "short", "longer", "twice", "other bytes"],
  peer: ["well", "gone", "broken", "short", "longer", "twice", "other bytes"],
  leaving: 0,
};

/** The node's own disk verifies what it returns; it may have evicted a blob, or detect damage late. */
const nearMishaps: readonly Mishap[] = ["well", "well", "gone", "corrupt", "broken"];

/** A node's disk over a tier, with another node's disk in between: all real, except for what they are on. */
async function node(random: Random, world: World) {
  // One tenant reads large blobs through a small disk: shares between tenants are not tested here.
  const uploadShares = { ...uploadSharesDefault, all: 1, tenant: 1, caller: 1 };
  const disk = await diskRig({ sizeBytesMax: 16 * KiB * KiB, promisedMs: 0, uploadShares });
  const tier = createMemoryBlobs({ clock, sizeBytesMax: 64 * KiB * KiB });
  const other = verifyingReads(brokenReads(tier, { random: random.fork("peer"), mishaps: world.peer }));
  const part = verifyingReads(brokenReads(tier, { random: random.fork("tier"), mishaps: world.tier }));
  const far = breaker(observed(part, { begin: () => ({ ended: () => {} }) }), { clock, probeMs: 0 });
  const reached = withShortCuts({ clock, far, shortCuts: () => [other], leftAloneMs: 0 });
  const writing = new Set<Promise<void>>();
  const near: Store = {
    ...disk.store,
    forTenant(tenant) {
      const { blobs, uploads } = disk.store.forTenant(tenant);
      const write: BlobStore["write"] = (...what) => {
        const written = blobs.write(...what).finally(() => writing.delete(written));
        writing.add(written);
        return written;
      };
      return {
        blobs: { ...brokenReads(blobs, { random: random.fork("near"), mishaps: nearMishaps }), write },
        uploads,
      };
    },
    close: async () => {},
  };
  const store = tieredStore({ near, far: () => reached, whenDead: "serve-local" });
  const door = await openDoor(clock, { store, isPrompt: false });
  return {
    tier,
    near: disk.store.forTenant("mill").blobs,
    client: () => door.as("reader@mill"),
    async [Symbol.asyncDispose]() {
      await door[Symbol.asyncDispose]();
      await Promise.allSettled(writing); // copies are written to the end, even if their readers have left
      await disk.dispose();
    },
  };
}

type Reader = { readonly client: GrpcClient; readonly digest: Digest; readonly blob: Uint8Array };

/** Everything from the offset on, as plain bytes while they arrive. */
function partsFrom({ client, digest }: Reader, offset: number, isZstd: boolean): AsyncIterable<Uint8Array> {
  const resourceName = `${isZstd ? "compressed-blobs/zstd" : "blobs"}/${digest}`;
  const answers = client.serverStream(ByteStream.methods.read, { resourceName, readOffset: offset, readLimit: 0 });
  const data = (async function* () {
    for await (const answer of answers) yield answer.data;
  })();
  return isZstd ? unpacked(data, Number(digest.split("/")[1])) : data;
}

const triesMax = 1_000;

/**
 * Reads until one read succeeds; each starts where the last one stopped, or from the beginning if it was told to.
 * `begun`: the bytes it already has.
 */
async function readWhole(reader: Reader, random: Random, { leaving, begun }: { leaving: number; begun: number }) {
  const { blob } = reader;
  const have = Buffer.alloc(blob.length);
  have.set(blob.subarray(0, begun));
  let at = begun;
  const check = (): void => ok(have.subarray(0, at).equals(blob.subarray(0, at)), `the first ${at} bytes are others`);
  for (let tries = 0; tries < triesMax; tries += 1)
    try {
      const leavesAt = random.chance(leaving) ? at + random.below(blob.length + 1 - at) : Infinity;
      for await (const part of partsFrom(reader, at, random.chance(0.3))) {
        ok(at + part.length <= blob.length, `${at} + ${part.length} bytes of ${blob.length}`);
        have.set(part, at);
        at += part.length;
        if (at >= leavesAt) throw new GrpcError(grpcCode.unavailable, "left by the reader");
      }
      check();
      return have.subarray(0, at);
    } catch (error) {
      // "Not found" is never a right answer: the tier has it.
      if (!(error instanceof GrpcError)) throw error;
      if (error.code === grpcCode.dataLoss) at = 0;
      else if (error.code === grpcCode.unavailable) check();
      else throw error;
    }
  throw new Error(`after ${triesMax} tries it has ${at} of ${blob.length} bytes`);
}

/** When it throws, all have ended: nothing reads from what is being closed. */
async function allOf(running: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(running)) if (outcome.status === "rejected") throw outcome.reason;
}

async function play(seed: number, world: World): Promise<void> {
  const random = new Random(seed);
  await using made = await node(random, world);
  const { tier, near, client } = made;
  const reading = Array.from({ length: random.between(1, 3) }, async () => {
    const blob = Buffer.alloc(random.pick(sizes));
    for (let i = 0; i < blob.length; i += 1) blob[i] = i < 16 ? random.next32() : (blob[i - 16] ?? 0) + (i >> 8);
    const digest = digestOf(blob);
    await tier.write(digest, blob);
    if (random.chance(0.3)) await near.write(digest, blob);
    const readers = Array.from({ length: random.between(1, 4) }, async (_, i) => {
      const begun = random.pick([0, 0, random.below(blob.length + 1), blob.length]);
      const { leaving } = world;
      const got = await readWhole({ client: client(), digest, blob }, random.fork(`reader ${i}`), { leaving, begun });
      deepEqual(Buffer.compare(got, blob), 0);
    });
    // A copy that appears in the middle.
    const keeping = random.chance(0.3) ? [near.write(digest, blob)] : [];
    await allOf([...readers, ...keeping]);
  });
  await allOf(reading);
}

const numRuns = Number(process.env["READ_RUNS"] ?? 10);

test("what readers have collected is a prefix of the blob, and in the end the blob", { timeout: 120_000 }, () =>
  fc.assert(
    fc.asyncProperty(fc.integer(), (seed) => play(seed, honest)),
    { numRuns, endOnFailure: true },
  ),
);

test("also with a corrupt source, for readers that start again when told to", { timeout: 120_000 }, () =>
  fc.assert(
    fc.asyncProperty(fc.integer(), (seed) => play(seed, lying)),
    { numRuns, endOnFailure: true },
  ),
);
