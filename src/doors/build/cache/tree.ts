/** A directory and all those below it, in breadth-first order, each once. */
import type { Digest, DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { Directory, type GetTreeRequest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import type { RawTreePage } from "#wire/raw-message.ts";
import { need } from "#doors/build/caller.ts";
import { digestOfWire, functionFor, functionOf, isEmpty } from "#doors/build/digests.ts";
import { servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { eachOf } from "./each-of.ts";
import { invalid, notFound } from "#doors/build/refusals.ts";

const directoriesMax = 1_000_000;
const pageBytesMax = 1024 * 1024;
const pageCountMax = 10_000;
const readAtOnceMax = 32;

export async function* getTree(
  ports: BuildPorts,
  { instanceName, rootDigest, pageSize, pageToken, digestFunction }: GetTreeRequest,
  call: BuildCall,
): AsyncGenerator<RawTreePage> {
  need(call.caller, "cache.read");
  servedInstance(instanceName, ports.settings);
  if (pageSize < 0) throw invalid(`page_size ${pageSize} is negative`);
  const root = digestOfWire(rootDigest, functionOf(digestFunction), "root_digest");
  const fn = functionFor(functionOf(digestFunction), rootDigest?.hash ?? "");
  const from = pageToken === "" ? 0 : placeOf(pageToken, root);
  const countMax = pageSize === 0 ? pageCountMax : Math.min(pageSize, pageCountMax);
  let page: Uint8Array[] = [];
  let pageBytes = 0;
  for await (const { bytes, place } of walk(root, fn, storeOf(ports, call).blobs)) {
    call.signal.throwIfAborted();
    if (place < from) continue;
    if (page.length > 0 && (page.length >= countMax || pageBytes + bytes.length > pageBytesMax)) {
      yield { directories: page, nextPageToken: tokenOf(place, root) };
      page = [];
      pageBytes = 0;
    }
    page.push(bytes);
    pageBytes += bytes.length;
  }
  yield { directories: page, nextPageToken: "" };
}

type Met = { readonly bytes: Uint8Array; readonly place: number };

/** A missing directory below the root is left out, with everything below it. */
async function* walk(root: Digest, fn: DigestFunction, blobs: BlobStore): AsyncGenerator<Met> {
  const queue = [root];
  const seen = new Set(queue);
  for (let at = 0; at < queue.length;) {
    const batch = queue.slice(at, at + readAtOnceMax);
    const read = await eachOf(batch, readAtOnceMax, (digest) => bytesOrNone(blobs, digest));
    for (const [i, bytes] of read.entries()) {
      if (!bytes && at + i === 0) throw notFound("the root of the tree is not here");
      if (!bytes) continue;
      for (const child of childrenOf(bytes, fn))
        if (!seen.has(child)) {
          seen.add(child);
          queue.push(child);
        }
      if (queue.length > directoriesMax) throw invalid(`a tree of more than ${directoriesMax} directories`);
      yield { bytes, place: at + i };
    }
    at += batch.length;
  }
}

async function bytesOrNone(blobs: BlobStore, digest: Digest): Promise<Uint8Array | undefined> {
  if (isEmpty(digest)) return new Uint8Array();
  try {
    return await wholeBlob(blobs, digest);
  } catch (error) {
    if (isFault(error, "not-found")) return undefined;
    throw error;
  }
}

function childrenOf(bytes: Uint8Array, fn: DigestFunction): readonly Digest[] {
  try {
    return decode(Directory, bytes).directories.map(({ digest }) => digestOfWire(digest, fn, "a directory's digest"));
  } catch (error) {
    throw isFault(error, "invalid") ? invalid(`a blob in the tree is no directory: ${error.message}`) : error;
  }
}

/** Contains everything needed to continue, so that any node can. */
const tokenOf = (place: number, root: Digest): string => `${place}.${root}`;

function placeOf(token: string, root: Digest): number {
  const [, place, of] = /^([1-9][0-9]{0,8})\.(.*)$/.exec(token) ?? [];
  if (place === undefined || of !== root) throw invalid("page_token is none of this tree");
  return Number(place);
}
