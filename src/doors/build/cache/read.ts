import { digestSizeBytes, type Digest } from "#base/digest.ts";
import type { Form, LentFile, Range } from "#blobs/store.ts";
import { fileMessages } from "#grpc/body/file-messages.ts";
import { OnlyMessage, type LaidMessage } from "#grpc/outgoing.ts";
import type { ReadRequest, ReadResponse } from "#wire/generated/google/bytestream/bytestream.ts";
import { readResponseHead } from "#wire/read-response.ts";
import { noBytes } from "#wire/reader.ts";
import { need } from "#doors/build/caller.ts";
import { isEmpty } from "#doors/build/digests.ts";
import { resourceHeaderProblem, servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { parseReadName } from "#doors/build/names.ts";
import { PartSource } from "./part-source.ts";
import { invalid, notFound, outOfRange } from "#doors/build/refusals.ts";

/** A blob in memory of up to this size is answered at once, as a copy. */
const atOnceBytesMax = 64 * 1024;

/** Smaller blobs are hardly ever separate files; the store's normal read is as good. */
const lentBytesMin = 64 * 1024;

type Answers = OnlyMessage<ReadResponse> | AsyncIterable<LaidMessage>;

/** Nothing is answered before the blob is known to exist: a stream that ends early without an error would be wrong. */
export function readBlob(ports: BuildPorts, request: ReadRequest, call: BuildCall): Answers {
  const { resourceName, readOffset, readLimit } = request;
  need(call.caller, "cache.read");
  const { instance, digest, form } = parseReadName(resourceName);
  servedInstance(instance, ports.settings);
  const problem = resourceHeaderProblem(call, resourceName);
  if (problem !== undefined) throw invalid(problem);
  const sizeBytes = digestSizeBytes(digest);
  if (readOffset < 0 || readOffset > sizeBytes) throw outOfRange(`read_offset ${readOffset} is not within the blob`);
  if (readLimit < 0) throw invalid(`read_limit ${readLimit} is negative`);
  if (form === "zstd" && readLimit !== 0) throw invalid("read_limit cannot be given for compressed bytes");
  if (isEmpty(digest)) return new OnlyMessage({ data: noBytes });
  const { blobs } = storeOf(ports, call);
  const length = readLimit > 0 ? Math.min(readLimit, sizeBytes - readOffset) : sizeBytes - readOffset;
  if (form === "plain" && sizeBytes <= atOnceBytesMax) {
    const bytes = blobs.prompt?.bytes(digest);
    if (bytes) return new OnlyMessage({ data: bytes.subarray(readOffset, readOffset + length) });
  }
  return streamed(ports, call, { digest, range: { offset: readOffset, length }, form });
}

type Wanted = { readonly digest: Digest; readonly range: Range & { readonly length: number }; readonly form: Form };

/** The store's parts are copied into chunks that are sent as they are, while the next ones are read. */
async function* streamed(
  ports: BuildPorts,
  call: BuildCall,
  { digest, range, form }: Wanted,
): AsyncGenerator<LaidMessage> {
  const { blobs } = storeOf(ports, call);
  if (range.length === 0 && form === "plain") {
    if ((await blobs.missing([digest])).length > 0) throw notFound("the blob is not here");
    return;
  }
  const { offset, length } = range;
  const lent = form === "plain" && length >= lentBytesMin ? await blobs.file?.(digest) : undefined;
  if (lent) return yield* fromFile(lent, offset, length);
  const source = new PartSource(blobs.read(digest, form === "zstd" ? { offset } : range, form));
  try {
    yield* fileMessages({ file: source, ...(form === "plain" && { length }), head: readResponseHead });
  } finally {
    await source.close();
  }
}

/** Directly from the file into what is sent. */
async function* fromFile(lent: LentFile, offset: number, length: number): AsyncGenerator<LaidMessage> {
  try {
    yield* fileMessages({ file: lent.file, offset, length, head: readResponseHead });
  } finally {
    await lent.release();
  }
}
