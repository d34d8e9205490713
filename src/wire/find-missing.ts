/**
 * FindMissingBlobs, hand-written: the most frequent call of builds. Digests are converted directly between the wire and
 * the store's form (`<hash>/<size>`), without a message for each. Takes about half the time of the generated code and
 * the conversion after it (`npm run bench protobuf`); find-missing.test.ts compares the two.
 *
 * The functions replace the generated messages: `{ ...method, request: findMissingRequest, ... }`.
 */
import type { Digest } from "#base/digest.ts";
import {
  FindMissingBlobsRequest,
  FindMissingBlobsResponse,
} from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Message } from "./message.ts";
import type { Reader } from "./reader.ts";
import type { Writer } from "./writer.ts";

export type FindMissing = {
  readonly instanceName: string;
  /** As they came, and not necessarily digests: the lookup must check. */
  readonly digests: readonly Digest[];
  /** A number of `DigestFunction_Value`. */
  readonly digestFunction: number;
};

export type FoundMissing = { readonly missing: readonly Digest[] };

const tags = { instanceName: 10, digest: 18, digestFunction: 24, hash: 10, sizeBytes: 16 } as const;
const hashLength = 64;
const slash = 0x2f;

/** What `toString` and `write` with "latin1" call internally; going through those takes half as long again. */
type Latin1 = Buffer & {
  latin1Slice(start: number, end: number): string;
  latin1Write(text: string, at: number, length: number): number;
};

export const findMissingRequest: Message<FindMissing> = {
  typeName: FindMissingBlobsRequest.typeName,
  write(message, to) {
    if (message.instanceName !== "") to.string(tags.instanceName, message.instanceName);
    for (const digest of message.digests) writeDigest(digest, to);
    if (message.digestFunction !== 0) to.int32(tags.digestFunction, message.digestFunction);
  },
  read(from, end, before) {
    let instanceName = before?.instanceName ?? "";
    const digests = (before?.digests ?? []) as Digest[];
    let digestFunction = before?.digestFunction ?? 0;
    while (from.pos < end) {
      const tag = from.tag();
      if (tag === tags.digest) digests.push(readDigest(from));
      else if (tag === tags.instanceName) instanceName = from.string();
      else if (tag === tags.digestFunction) digestFunction = from.int32();
      else from.skip(tag);
    }
    return { instanceName, digests, digestFunction };
  },
};

export const findMissingResponse: Message<FoundMissing> = {
  typeName: FindMissingBlobsResponse.typeName,
  write({ missing }, to) {
    for (const digest of missing) writeDigest(digest, to);
  },
  read(from, end, before) {
    const missing = (before?.missing ?? []) as Digest[];
    while (from.pos < end) {
      const tag = from.tag();
      if (tag === tags.digest) missing.push(readDigest(from));
      else from.skip(tag);
    }
    return { missing };
  },
};

/**
 * Nearly every client writes a hash of 64 characters and then the size; anything else is read step by step. Hash bytes
 * that are not ASCII become some text that is not a digest.
 */
function readDigest(from: Reader): Digest {
  const end = from.enter();
  const { bytes, pos } = from;
  const sizeAt = pos + 2 + hashLength;
  let hash = "";
  let sizeBytes = 0;
  if (bytes[pos] === tags.hash && bytes[pos + 1] === hashLength && sizeAt < end && bytes[sizeAt] === tags.sizeBytes) {
    hash = (bytes as Latin1).latin1Slice(pos + 2, sizeAt);
    from.pos = sizeAt;
  }
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === tags.hash) hash = from.string();
    else if (tag === tags.sizeBytes) sizeBytes = from.int64();
    else from.skip(tag);
  }
  from.leave(end);
  return `${hash}/${sizeBytes}`;
}

function writeDigest(digest: Digest, to: Writer): void {
  if (digest.charCodeAt(hashLength) !== slash) return writeOther(digest, to);
  const sizeBytes = Number(digest.slice(hashLength + 1));
  const start = to.open(tags.digest);
  to.reserve(2 + hashLength);
  const { bytes, pos } = to;
  bytes[pos] = tags.hash;
  bytes[pos + 1] = hashLength;
  (bytes as Latin1).latin1Write(digest, pos + 2, hashLength);
  to.pos = pos + 2 + hashLength;
  if (sizeBytes !== 0) to.int64(tags.sizeBytes, sizeBytes);
  to.close(start);
}

/** With the name of its function before it, or with a hash of another length. */
function writeOther(digest: Digest, to: Writer): void {
  const slashAt = digest.lastIndexOf("/");
  const hashAt = digest.indexOf(":") + 1;
  const sizeBytes = Number(digest.slice(slashAt + 1));
  const start = to.open(tags.digest);
  if (slashAt > hashAt) to.string(tags.hash, digest.slice(hashAt, slashAt));
  if (sizeBytes !== 0) to.int64(tags.sizeBytes, sizeBytes);
  to.close(start);
}
