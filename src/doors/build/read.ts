import { digestSizeBytes, type Digest } from "#base/digest.ts";
import type { Form, Range } from "#blobs/store.ts";
import { LentMessage, OnlyMessage } from "#grpc/outgoing.ts";
import type { ReadRequest, ReadResponse } from "#wire/generated/google/bytestream/bytestream.ts";
import { readResponseHead } from "#wire/read-response.ts";
import { noBytes } from "#wire/reader.ts";
import { need } from "./caller.ts";
import { isEmpty } from "./digests.ts";
import { resourceHeaderProblem, servedInstance, storeOf, type BuildCall, type BuildPorts } from "./door.ts";
import { parseReadName } from "./names.ts";
import { invalid, outOfRange } from "./refusals.ts";

/** Long parts are sent as several messages: no client takes one of more than 4 MiB unless it was told to. */
const pieceBytesMax = 1024 * 1024;
/** Up to here a blob that is in memory is answered at once, as a copy. */
const atOnceBytesMax = 64 * 1024;
/** From here on it pays to send bytes from where they are. */
const lentBytesMin = 32 * 1024;

type Answers = OnlyMessage<ReadResponse> | AsyncIterable<ReadResponse | LentMessage>;

/** Nothing is answered before it is known that the blob is there: a stream that ends early and well is a lie. */
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
  return streamed(ports, call, { digest, range: { offset: readOffset, ...(readLimit > 0 && { length }) }, form });
}

type Wanted = { readonly digest: Digest; readonly range: Range; readonly form: Form };

async function* streamed(
  ports: BuildPorts,
  call: BuildCall,
  { digest, range, form }: Wanted,
): AsyncGenerator<ReadResponse | LentMessage> {
  for await (const part of storeOf(ports, call).blobs.read(digest, range, form))
    for (let at = 0; at < part.length; at += pieceBytesMax) {
      const data = part.subarray(at, at + pieceBytesMax);
      // The part is ours until we ask for the next one, which is when it has been sent.
      yield data.length < lentBytesMin ? { data } : new LentMessage(readResponseHead.of(data.length), data);
    }
}
