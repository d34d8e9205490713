/**
 * A server of the Remote Execution API as a store: small blobs in batches, large ones in streams that resume where they
 * broke, compressed with zstd if the server offers it. Bytes are verified in both directions (B1).
 */
import type { Clock } from "#base/clock.ts";
import { digestText as textOf, type Digest, type DigestFunction } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import { partsOf } from "#blobs/hashing.ts";
import { canonical, verified } from "#blobs/sha256.ts";
import { readsFrom } from "#blobs/plain-reads.ts";
import type { BlobStore, Range } from "#blobs/store.ts";
import type { RawPart } from "#blobs/tiers/ranges/part-reads.ts";
import { unpacked } from "#blobs/zstd.ts";
import type { GrpcClient } from "#grpc/client.ts";
import {
  ContentAddressableStorage as Cas,
  DigestFunction_Value as numbers,
  type Digest as WireDigest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { Batcher } from "#blobs/tiers/batcher.ts";
import { bytesOf } from "#blobs/tiers/s3/http-call.ts";
import { asFault, statusFault } from "./reapi-fault.ts";
import { reapiOffer } from "./reapi-offer.ts";
import { reapiStreams } from "./reapi-streams.ts";
import { retrying, retryPolicyDefault, type RetryPolicy } from "#blobs/tiers/retry.ts";
import { verifiedRange } from "#blobs/tiers/verifying.ts";

export type ReapiOptions = {
  readonly clock: Clock;
  readonly random: Random;
  readonly client: GrpcClient;
  readonly instance: string;
  /** How long the server keeps a blob after a request for it; left out: forever. */
  readonly lifetimeMs?: number;
  /** How long to wait for an answer, over all attempts. */
  readonly callMs?: number;
  readonly retry?: RetryPolicy;
};

const functionNumber: Readonly<Record<DigestFunction, number>> = {
  sha256: numbers.SHA256,
  sha1: numbers.SHA1,
  sha384: numbers.SHA384,
  sha512: numbers.SHA512,
  blake3: numbers.BLAKE3,
};

/** Blobs up to this size are batched. */
const smallBytes = 64 * 1024;
const digestsMax = 5_000;

export function reapiBlobs(options: ReapiOptions): BlobStore & { readonly raw: RawPart } {
  const { client, instance, clock, random, callMs = 30_000, retry: policy = retryPolicyDefault } = options;
  const again = <T>(doing: string, attempt: () => Promise<T>): Promise<T> =>
    retrying({ clock, random, policy: { withinMs: callMs, ...policy } }, () =>
      attempt().catch((error: unknown) => {
        throw asFault(error, doing);
      }),
    );
  const offer = reapiOffer({ client, instance, callMs });
  const streams = reapiStreams({ clock, client, instance, callMs, again, offer });

  const missingOf = async (digests: readonly Digest[]): Promise<readonly Digest[]> => {
    const names = digests.map((digest) => canonical(digest));
    const gone = new Set<Digest>();
    for (const [fn, named] of byFunction(names))
      for (let at = 0; at < named.length; at += digestsMax) {
        const blobDigests = named.slice(at, at + digestsMax).map(wireDigest);
        const request = { instanceName: instance, blobDigests, digestFunction: functionNumber[fn] };
        const call = () => client.unary(Cas.methods.findMissingBlobs, request, { deadlineMs: callMs });
        const { missingBlobDigests } = await again("find missing blobs", call);
        for (const { hash, sizeBytes } of missingBlobDigests) gone.add(textOf(fn, hash, sizeBytes));
      }
    return digests.filter((_, i) => gone.has(names[i] ?? ""));
  };

  const batching = { bytesMax: async () => (await offer()).batchBytesMax, countMax: 1_000, callsMax: 4 };
  const reads = new Batcher<Digest, Uint8Array>({
    ...batching,
    call: (named) => again("read blobs", () => readBatch(client, instance, callMs, named)),
  });
  const writes = new Batcher<{ readonly digest: Digest; readonly data: Uint8Array }, true>({
    ...batching,
    call: (named) => again("write blobs", () => writeBatch(client, instance, callMs, named)),
  });

  const whole = (digest: Digest): AsyncIterable<Uint8Array> =>
    partsOf(digest).sizeBytes <= smallBytes
      ? only(() => reads.add(digest, partsOf(digest).sizeBytes))
      : streams.read(digest);

  const readPlain = (digest: Digest, range: Range): AsyncGenerator<Uint8Array> =>
    verifiedRange(digest, whole(digest), range);

  return {
    raw: (digest, offset, length) => streams.part(digest, offset, length),
    missing: missingOf,
    read: readsFrom(readPlain),
    async write(digest, source, form) {
      const name = canonical(digest);
      const { sizeBytes } = partsOf(name);
      const bytes = verified(name, form === "zstd" ? unpacked(source, sizeBytes) : source);
      if (sizeBytes > smallBytes) return await streams.write(name, bytes);
      await writes.add({ digest: name, data: await bytesOf(bytes, smallBytes) }, sizeBytes);
    },
    async pin(digests, forMs) {
      const { lifetimeMs = Infinity } = options;
      if (forMs > lifetimeMs)
        throw new Fault("invalid", "pin", { forMs, lifetimeMs, why: "the server keeps blobs for a shorter time" });
      const gone = await missingOf(digests);
      return gone.length > 0 ? { missing: gone } : { digests, pinnedForMs: forMs };
    },
  };
}

type Answers<T> = readonly (T | Error)[];

async function readBatch(
  client: GrpcClient,
  instanceName: string,
  deadlineMs: number,
  named: readonly Digest[],
): Promise<Answers<Uint8Array>> {
  const found = new Map<Digest, Uint8Array | Error>();
  for (const [fn, names] of byFunction([...new Set(named)])) {
    const request = {
      instanceName,
      digests: names.map(wireDigest),
      acceptableCompressors: [],
      digestFunction: functionNumber[fn],
    };
    const { responses } = await client.unary(Cas.methods.batchReadBlobs, request, { deadlineMs });
    for (const { digest, data, status } of responses) {
      if (!digest) continue;
      const isOk = (status?.code ?? 0) === 0;
      const got = isOk ? Uint8Array.from(data) : statusFault(status?.code ?? 2, status?.message ?? "", "read blob");
      found.set(textOf(fn, digest.hash, digest.sizeBytes), got);
    }
  }
  return named.map(
    (digest) => found.get(digest) ?? new Fault("unavailable", "read blob", { digest, why: "no answer" }),
  );
}

async function writeBatch(
  client: GrpcClient,
  instanceName: string,
  deadlineMs: number,
  named: readonly { readonly digest: Digest; readonly data: Uint8Array }[],
): Promise<Answers<true>> {
  const done = new Map<Digest, true | Error>();
  const dataOf = new Map(named.map(({ digest, data }) => [digest, data]));
  for (const [fn, names] of byFunction([...dataOf.keys()])) {
    const requests = names.map((name) => ({
      digest: wireDigest(name),
      data: dataOf.get(name) ?? new Uint8Array(),
      compressor: 0,
    }));
    const request = { instanceName, requests, digestFunction: functionNumber[fn] };
    const { responses } = await client.unary(Cas.methods.batchUpdateBlobs, request, { deadlineMs });
    for (const { digest, status } of responses) {
      if (!digest) continue;
      const isOk = (status?.code ?? 0) === 0;
      const outcome = isOk ? true : statusFault(status?.code ?? 2, status?.message ?? "", "write blob");
      done.set(textOf(fn, digest.hash, digest.sizeBytes), outcome);
    }
  }
  return named.map(
    ({ digest }) => done.get(digest) ?? new Fault("unavailable", "write blob", { digest, why: "no answer" }),
  );
}

async function* only(read: () => Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield await read();
}

function byFunction(names: readonly Digest[]): ReadonlyMap<DigestFunction, readonly Digest[]> {
  return Map.groupBy(names, (name) => partsOf(name).fn);
}

function wireDigest(name: Digest): WireDigest {
  const { hash, sizeBytes } = partsOf(name);
  return { hash, sizeBytes };
}
