import { digestSizeBytes } from "#base/digest.ts";
import type { ReadRequest, ReadResponse } from "#wire/generated/google/bytestream/bytestream.ts";
import { need } from "./caller.ts";
import { isEmpty } from "./digests.ts";
import { resourceHeaderProblem, servedInstance, storeOf, type BuildCall, type BuildPorts } from "./door.ts";
import { parseReadName } from "./names.ts";
import { invalid, outOfRange } from "./refusals.ts";

/** Long parts are sent as several messages: no client takes one of more than 4 MiB unless it was told to. */
const pieceBytesMax = 1024 * 1024;

/** Nothing is answered before it is known that the blob is there: a stream that ends early without an error is a lie. */
export async function* readBlob(
  ports: BuildPorts,
  { resourceName, readOffset, readLimit }: ReadRequest,
  call: BuildCall,
): AsyncGenerator<ReadResponse> {
  need(call.caller, "cache.read");
  const { instance, digest, form } = parseReadName(resourceName);
  servedInstance(instance, ports.settings);
  const problem = resourceHeaderProblem(call, resourceName);
  if (problem !== undefined) throw invalid(problem);
  const sizeBytes = digestSizeBytes(digest);
  if (readOffset < 0 || readOffset > sizeBytes) throw outOfRange(`read_offset ${readOffset} is not within the blob`);
  if (readLimit < 0) throw invalid(`read_limit ${readLimit} is negative`);
  if (form === "zstd" && readLimit !== 0) throw invalid("read_limit cannot be given for compressed bytes");
  if (isEmpty(digest)) return;
  const { blobs } = storeOf(ports, call);
  const range = { offset: readOffset, ...(readLimit > 0 && { length: Math.min(readLimit, sizeBytes - readOffset) }) };
  for await (const part of blobs.read(digest, range, form))
    for (let at = 0; at < part.length; at += pieceBytesMax) {
      call.signal.throwIfAborted();
      yield { data: part.subarray(at, at + pieceBytesMax) };
    }
}
