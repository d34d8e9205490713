/** Large blobs as chunks that are blobs too, so that parts that two versions share are sent and stored once. */
import { digestSizeBytes, parseDigest, type Digest, type DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { EntryKey } from "#blobs/action-index.ts";
import { chunksOf, FastCdc, fastCdcDefault } from "#blobs/chunking/fast-cdc.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import {
  ChunkingFunction_Value,
  SplitBlobResponse,
  type SpliceBlobRequest,
  type SpliceBlobResponse,
  type SplitBlobRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode } from "#wire/message.ts";
import { need } from "#doors/build/caller.ts";
import { digestOfWire, functionFor, functionOf, isEmpty, wireOf } from "#doors/build/digests.ts";
import { servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { invalid, notFound } from "#doors/build/refusals.ts";

const cdc = new FastCdc(fastCdcDefault);

export async function splitBlob(
  ports: BuildPorts,
  { instanceName, blobDigest, digestFunction }: SplitBlobRequest,
  call: BuildCall,
): Promise<SplitBlobResponse> {
  // Chunks are written, but only of blobs that exist: a caller cannot add new content this way.
  need(call.caller, "cache.read");
  servedInstance(instanceName, ports.settings);
  const digest = digestOfWire(blobDigest, functionOf(digestFunction), "blob_digest");
  const fn = functionFor(functionOf(digestFunction), blobDigest?.hash ?? "");
  if (isEmpty(digest)) return { chunkDigests: [], chunkingFunction: ChunkingFunction_Value.FAST_CDC_2020 };
  const { blobs } = storeOf(ports, call);
  if ((await blobs.missing([digest])).length > 0) throw notFound("the blob is not here");
  const kept = await keptChunks(ports, keyOf(call, digest), blobs, fn);
  if (kept) return kept;
  const chunks = await writeChunks(blobs, digest, fn, call.signal);
  const response = { chunkDigests: chunks.map(wireOf), chunkingFunction: ChunkingFunction_Value.FAST_CDC_2020 };
  await keepChunks(ports, call, digest, response);
  return response;
}

/** While one chunk is being cut, others are being written. */
const writesMax = 8;

async function writeChunks(
  blobs: BlobStore,
  digest: Digest,
  fn: DigestFunction,
  signal: AbortSignal,
): Promise<readonly Digest[]> {
  const chunks: Digest[] = [];
  const writing: Promise<void>[] = [];
  for await (const chunk of chunksOf(blobs.read(digest), cdc)) {
    signal.throwIfAborted();
    const own = Uint8Array.from(chunk);
    const name = digestOf(own, fn);
    chunks.push(name);
    const write = blobs.write(name, own);
    write.catch(() => {}); // handled when its turn comes
    writing.push(write);
    if (writing.length >= writesMax) await writing.shift();
  }
  await Promise.all(writing);
  return chunks;
}

/** Writes the blob in full: it stays complete although a chunk may be evicted. */
export async function spliceBlob(
  ports: BuildPorts,
  { instanceName, blobDigest, chunkDigests, digestFunction, chunkingFunction }: SpliceBlobRequest,
  call: BuildCall,
): Promise<SpliceBlobResponse> {
  need(call.caller, "cache.write");
  servedInstance(instanceName, ports.settings);
  const given = functionOf(digestFunction);
  const digest = digestOfWire(blobDigest, given, "blob_digest");
  const chunks = chunkDigests.map((chunk) => digestOfWire(chunk, given, "the digest of a chunk"));
  const sizeBytes = chunks.reduce((sum, chunk) => sum + digestSizeBytes(chunk), 0);
  if (sizeBytes !== digestSizeBytes(digest))
    throw invalid(`chunks of ${sizeBytes} bytes for a blob of ${digestSizeBytes(digest)}`);
  if (sizeBytes > ports.settings.blobBytesMax) throw invalid(`at most ${ports.settings.blobBytesMax} bytes are taken`);
  const { blobs } = storeOf(ports, call);
  const gone = await blobs.missing([...new Set(chunks)].filter((chunk) => !isEmpty(chunk)));
  const isThere = isEmpty(digest) || (await blobs.missing([digest])).length === 0;
  if (gone.length > 0 && isThere) throw new GrpcError(grpcCode.alreadyExists, "the blob is here, in other chunks");
  if (gone.length > 0) throw notFound(`${gone.length} of the chunks are not here, among them ${gone[0]}`);
  if (!isThere) {
    await blobs.write(digest, joined(chunks, blobs));
    await keepChunks(ports, call, digest, { chunkDigests, chunkingFunction });
  }
  return { blobDigest };
}

async function* joined(chunks: readonly Digest[], blobs: BlobStore): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) if (!isEmpty(chunk)) yield* blobs.read(chunk);
}

/** How a blob was split before, as long as all its chunks exist. */
async function keptChunks(
  { index }: BuildPorts,
  key: EntryKey,
  blobs: BlobStore,
  fn: DigestFunction,
): Promise<SplitBlobResponse | undefined> {
  const entry = await index.get(key);
  if (!entry) return undefined;
  try {
    const response = decode(SplitBlobResponse, await wholeBlob(blobs, entry.digest));
    const chunks = response.chunkDigests.map((chunk) => digestOfWire(chunk, fn, "a chunk"));
    return (await blobs.missing([...new Set(chunks)].filter((one) => !isEmpty(one)))).length > 0 ? undefined : response;
  } catch (error) {
    if (isFault(error, "not-found")) return undefined;
    throw error;
  }
}

async function keepChunks(ports: BuildPorts, call: BuildCall, digest: Digest, response: SplitBlobResponse) {
  const bytes = encode(SplitBlobResponse, response);
  const list = digestOf(bytes);
  await storeOf(ports, call).blobs.write(list, bytes);
  const { clock, index } = ports;
  await index.put(keyOf(call, digest), { digest: list, principal: call.caller.principal, atMs: clock.wallMs() });
}

function keyOf({ caller }: BuildCall, digest: Digest): EntryKey {
  const { fn = "sha256", hash = "", sizeBytes = 0 } = parseDigest(digest) ?? {};
  return { tenant: caller.tenant, space: `chunks/${fn}`, name: `${hash}/${sizeBytes}` };
}
