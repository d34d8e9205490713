/**
 * Reads that resume after an interruption, as Bazel's do, from three real nodes: connections break after some bytes of
 * an answer or after all of them, nodes are killed with -9, and still what a reader has is always a prefix of the blob.
 */
import { ok } from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { systemClock as clock } from "#door/system-clock.ts";
import { Random } from "#base/random.ts";
import { isFault } from "#base/fault.ts";
import { Processes } from "#e2e/chaos/processes.ts";
import { GrpcClient } from "#grpc/client.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { connectH2 } from "#h2/client.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { Balancer } from "./balancer.ts";
import { Fleet } from "./fleet.ts";
import { Scissors } from "./scissors.ts";

const postgres = await sharedPostgres();
const KiB = 1024;
const sizes = [1, 123, 5_000, 64 * KiB, 64 * KiB + 1, 300 * KiB, 2 * KiB * KiB];
const readers = 6;
const roundsEach = 3;
/** Where connections break is chance: readers go on until they have met both kinds of break. */
const roundsMax = 1_000;

/** The codes after which Bazel retries. */
const passing: readonly number[] = [
  grpcCode.cancelled,
  grpcCode.unknown,
  grpcCode.deadlineExceeded,
  grpcCode.internal,
  grpcCode.unavailable,
  grpcCode.resourceExhausted,
];

describe("reads of a fleet with failures", { skip: postgres.skip, timeout: 280_000 }, () => {
  const processes = new Processes();
  const random = new Random(process.env["FLEET_SEED"] ?? "reads");
  let fleet: Fleet;
  let balancer: Balancer;

  before(async () => {
    const database = await postgres.server().freshDatabase();
    fleet = await Fleet.start({ nodes: 3, shards: 4, leaseMs: 2_000, slots: 1 }, { processes, database });
    const scissors = (): Scissors => new Scissors({ random: random.fork("snip"), share: 0.04 });
    balancer = await Balancer.open(
      fleet.members.map(({ edge }) => edge),
      { scissors },
    );
  });
  after(async () => {
    await balancer[Symbol.asyncDispose]();
    await fleet[Symbol.asyncDispose]();
    await processes.close();
    await postgres.stop();
  });

  test("what was read is a prefix of the blob, and in the end the blob", async () => {
    const blobs: Blob[] = [];
    for (const size of sizes) blobs.push(await upload(fleet.client(fleet.member("n1")), size, random));
    const over = new AbortController();
    const killing = killNow(fleet, random.fork("kill"), over.signal);
    const counts = { resumedInside: 0, resumedAtEnd: 0 };
    const isSeen = (): boolean => counts.resumedInside > 0 && counts.resumedAtEnd > 0;
    try {
      await Promise.all(
        Array.from({ length: readers }, async (_, i) => {
          const order = random.fork(`reader ${i}`);
          for (let round = 0; round < roundsEach * sizes.length || (!isSeen() && round < roundsMax); round += 1)
            await readWhole(balancer.address, order.pick(blobs), counts);
        }),
      );
    } finally {
      over.abort();
      await killing;
    }
    ok(isSeen(), JSON.stringify({ ...counts, cuts: balancer.cuts }));
  });
});

type Blob = { readonly name: string; readonly bytes: Buffer };

async function upload(client: GrpcClient, size: number, random: Random): Promise<Blob> {
  const bytes = Buffer.alloc(size);
  for (let i = 0; i < size; i += 1) bytes[i] = i < 64 ? random.next32() : (bytes[i - 64] ?? 0) + (i >> 10);
  const name = `blobs/${createHash("sha256").update(bytes).digest("hex")}/${size}`;
  const requests = async function* () {
    const resourceName = `uploads/${crypto.randomUUID()}/${name}`;
    const step = 256 * KiB;
    for (let at = 0; at < size; at += step) {
      const data = bytes.subarray(at, at + step);
      yield { resourceName, writeOffset: at, finishWrite: at + step >= size, data };
    }
  };
  await client.clientStream(ByteStream.methods.write, requests());
  return { name, bytes };
}

/** Everything is running again when it ends. */
async function killNow(fleet: Fleet, random: Random, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const victim = random.pick(fleet.members);
    await fleet.kill(victim);
    fleet.up(victim);
    await fleet.ready(victim, 10);
    await clock.sleep(1_000, signal).catch(() => {});
  }
}

/** A separate connection, to whichever node the balancer chooses. */
function dial(address: string): GrpcClient {
  const [host = "", port] = address.split(":");
  return new GrpcClient({ clock, authority: address, connect: () => connectH2({ host, port: Number(port), clock }) });
}

async function readWhole(
  address: string,
  { name, bytes }: Blob,
  counts: { resumedInside: number; resumedAtEnd: number },
): Promise<void> {
  const have = Buffer.alloc(bytes.length);
  let client = dial(address);
  try {
    for (let at = 0; ;)
      try {
        const request = { resourceName: name, readOffset: at, readLimit: 0 };
        for await (const { data } of client.serverStream(ByteStream.methods.read, request)) {
          ok(at + data.length <= bytes.length, `${at} + ${data.length} bytes of ${name}`);
          have.set(data, at);
          at += data.length;
        }
        ok(have.subarray(0, at).equals(bytes), `${at} bytes of ${name}`);
        return;
      } catch (error) {
        if (!isPassing(error)) throw error;
        ok(have.subarray(0, at).equals(bytes.subarray(0, at)), `the first ${at} bytes of ${name} are others`);
        if (at === bytes.length) counts.resumedAtEnd += 1;
        else if (at > 0) counts.resumedInside += 1;
        client.close();
        await clock.sleep(20);
        client = dial(address);
      }
  } finally {
    client.close();
  }
}

const isPassing = (error: unknown): boolean =>
  isFault(error, "unavailable") || (error instanceof GrpcError && passing.includes(error.code));
