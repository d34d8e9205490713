import { hashBytes, type DigestFunction } from "#base/digest.ts";
import type { DigestBatch, Prompt } from "#blobs/store.ts";
import { isFault } from "#base/fault.ts";
import { answerRaw, type RawFindMissing } from "#wire/find-missing-raw.ts";
import {
  FindMissingBlobsRequest,
  FindMissingBlobsResponse,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { encode } from "#wire/message.ts";
import { Reader } from "#wire/reader.ts";
import { need } from "#doors/build/caller.ts";
import { digestFor, emptyHash, functionOf, isEmpty, wireOf } from "#doors/build/digests.ts";
import { servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { invalid } from "#doors/build/refusals.ts";

/** Synchronous where the store can be; a builder asks about ten thousand blobs in one call. */
export function findMissing(
  ports: BuildPorts,
  request: RawFindMissing,
  call: BuildCall,
): Uint8Array | Promise<Uint8Array> {
  need(call.caller, "cache.read");
  servedInstance(request.instanceName, ports.settings);
  const given = functionOf(request.digestFunction);
  const { blobs } = storeOf(ports, call);
  const { prompt } = blobs;
  const fn = given ?? guessed(request);
  if (prompt && fn) return atOnce(request, fn, prompt);
  return later(ports, request, call);
}

/** All hashes of a request use one function, so the first one tells which. */
function guessed({ bytes, start, end }: RawFindMissing): DigestFunction | undefined {
  // instance, tag of a digest, its length, tag of the hash, length of the hash: only SHA-256 is worth guessing.
  for (let at = start; at + 4 < end;) {
    const tag = bytes[at];
    const length = bytes[at + 1] as number;
    if (tag === 18 && length < 0x80) return bytes[at + 2] === 10 && bytes[at + 3] === 64 ? "sha256" : undefined;
    if (tag !== 10 || length >= 0x80) return undefined;
    at += 2 + length;
  }
  return undefined;
}

function atOnce(request: RawFindMissing, fn: DigestFunction, prompt: Prompt): Uint8Array {
  try {
    return answerRaw(request, {
      hexLength: hashBytes[fn] * 2,
      find: (batch, found) => (prompt.hasMany ? prompt.hasMany(fn, batch, found) : eachOf(prompt, fn, batch, found)),
      checkEmpty(hash) {
        if (hash !== emptyHash(fn)) throw invalid(`no empty blob has the hash ${hash}`);
      },
    });
  } catch (error) {
    throw isFault(error, "invalid") ? invalid(error.message) : error;
  }
}

function eachOf(prompt: Prompt, fn: DigestFunction, batch: DigestBatch, found: Uint8Array): void {
  const { hashes, sizes, count } = batch;
  const step = hashBytes[fn];
  for (let i = 0; i < count; i += 1) if (prompt.has(fn, hashes, i * step, sizes[i] as number)) found[i] = 1;
}

async function later(ports: BuildPorts, request: RawFindMissing, call: BuildCall): Promise<Uint8Array> {
  const from = new Reader(request.bytes.subarray(0, request.end));
  from.pos = request.start;
  const { blobDigests } = FindMissingBlobsRequest.read(from, request.end);
  const given = functionOf(request.digestFunction);
  const batch = new Set<string>();
  for (const { hash, sizeBytes } of blobDigests) {
    const digest = digestFor(given, hash, sizeBytes);
    if (!isEmpty(digest)) batch.add(digest);
  }
  const missing = await storeOf(ports, call).blobs.missing([...batch]);
  return encode(FindMissingBlobsResponse, { missingBlobDigests: missing.map(wireOf) });
}
