/** Many small blobs in one call. Each has a status of its own; only a batch that is too large is refused as a whole. */
import { digestSizeBytes, type Digest, type DigestFunction } from "#base/digest.ts";
import type { BlobStore, Form } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { grpcCode } from "#grpc/status.ts";
import {
  Compressor_Value,
  type BatchReadBlobsRequest,
  type BatchReadBlobsResponse,
  type BatchReadBlobsResponse_Response,
  type BatchUpdateBlobsRequest,
  type BatchUpdateBlobsRequest_Request,
  type BatchUpdateBlobsResponse,
  type Digest as WireDigest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Status } from "#wire/generated/google/rpc/status.ts";
import { noBytes } from "#wire/reader.ts";
import { need } from "#doors/build/caller.ts";
import { digestOfWire, functionOf, isEmpty } from "#doors/build/digests.ts";
import { servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { eachOf } from "./each-of.ts";
import { invalid, refusalOf } from "#doors/build/refusals.ts";
import { messageBytesMax } from "#doors/build/settings.ts";

const atOnceMax = 16;
const fine: Status = { code: grpcCode.ok, message: "", details: [] };

export async function batchUpdate(
  ports: BuildPorts,
  { instanceName, requests, digestFunction }: BatchUpdateBlobsRequest,
  call: BuildCall,
): Promise<BatchUpdateBlobsResponse> {
  need(call.caller, "cache.write");
  servedInstance(instanceName, ports.settings);
  const given = functionOf(digestFunction);
  checkTotal(
    requests.map(({ digest, data }) => Math.max(digest?.sizeBytes ?? 0, data.length)),
    ports.settings.batchBytesMax,
  );
  const { blobs } = storeOf(ports, call);
  const responses = await eachOf(requests, atOnceMax, async (request) => ({
    digest: request.digest,
    status: await statusOf(() => update(request, given, blobs)),
  }));
  return { responses };
}

async function update(
  { digest: wire, data, compressor }: BatchUpdateBlobsRequest_Request,
  given: DigestFunction | undefined,
  blobs: BlobStore,
): Promise<void> {
  const digest = digestOfWire(wire, given, "the digest of a blob");
  await blobs.write(digest, data, formOf(compressor));
}

function formOf(compressor: number): Form {
  if (compressor === Compressor_Value.IDENTITY) return "plain";
  if (compressor === Compressor_Value.ZSTD) return "zstd";
  throw invalid(`compressor ${compressor} is not served here; zstd is`);
}

export async function batchRead(
  ports: BuildPorts,
  { instanceName, digests, acceptableCompressors, digestFunction }: BatchReadBlobsRequest,
  call: BuildCall,
): Promise<BatchReadBlobsResponse> {
  need(call.caller, "cache.read");
  servedInstance(instanceName, ports.settings);
  const given = functionOf(digestFunction);
  checkTotal(
    digests.map(({ sizeBytes }) => sizeBytes),
    ports.settings.batchBytesMax,
  );
  const { blobs } = storeOf(ports, call);
  const takesZstd = acceptableCompressors.includes(Compressor_Value.ZSTD);
  // For tiny blobs the digest is most of the message: blobs that would exceed the clients' message limit are left for
  // another call.
  let leftBytes = messageBytesMax - 1024;
  const responses = await eachOf(digests, atOnceMax, async (wire): Promise<BatchReadBlobsResponse_Response> => {
    leftBytes -= Math.max(0, wire.sizeBytes) + wire.hash.length + 32;
    if (leftBytes < 0) return failed(wire, { ...fine, code: grpcCode.resourceExhausted, message: "ask again for it" });
    return await readOne(wire, given, blobs, takesZstd);
  });
  return { responses };
}

async function readOne(
  wire: WireDigest,
  given: DigestFunction | undefined,
  blobs: BlobStore,
  takesZstd: boolean,
): Promise<BatchReadBlobsResponse_Response> {
  let read: Pick<BatchReadBlobsResponse_Response, "data" | "compressor"> = { data: noBytes, compressor: 0 };
  const status = await statusOf(async () => {
    read = await bytesOf(digestOfWire(wire, given, "a digest"), blobs, takesZstd);
  });
  return { digest: wire, ...read, status };
}

/** Below this, compression costs more than it saves. */
const packedBytesMin = 1024;

async function bytesOf(digest: Digest, blobs: BlobStore, takesZstd: boolean) {
  if (isEmpty(digest)) return { data: noBytes, compressor: Compressor_Value.IDENTITY };
  const sizeBytes = digestSizeBytes(digest);
  if (takesZstd && sizeBytes >= packedBytesMin) {
    const parts: Uint8Array[] = [];
    for await (const part of blobs.read(digest, undefined, "zstd")) parts.push(Uint8Array.from(part));
    const data = Buffer.concat(parts);
    if (data.length < sizeBytes) return { data, compressor: Compressor_Value.ZSTD };
  }
  return { data: await wholeBlob(blobs, digest), compressor: Compressor_Value.IDENTITY };
}

const failed = (digest: WireDigest, status: Status): BatchReadBlobsResponse_Response => ({
  digest,
  data: noBytes,
  compressor: Compressor_Value.IDENTITY,
  status,
});

async function statusOf(run: () => Promise<void>): Promise<Status> {
  try {
    await run();
    return fine;
  } catch (error) {
    const { code, message, details } = refusalOf(error);
    return { code, message, details };
  }
}

function checkTotal(sizes: readonly number[], bytesMax: number): void {
  let bytes = 0;
  for (const size of sizes) bytes += Math.max(0, size);
  if (bytes > bytesMax) throw invalid(`a batch of ${bytes} bytes; at most ${bytesMax} are taken here`);
}
