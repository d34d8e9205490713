/** A blob as a response: whole or a range, plain or compressed, streamed no faster than the client reads. */
import { pipeline, Readable } from "node:stream";
import { createGzip } from "node:zlib";
import { parseDigest, type Digest } from "#base/digest.ts";
import { must } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { chosenCoding, type Coding } from "./coding.ts";
import { readRange } from "#http/range.ts";

export type BlobAnswer = {
  readonly request: Request;
  readonly blobs: BlobStore;
  readonly digest: Digest;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether it may be compressed: not if the bytes are compressed already. */
  readonly mayCode?: boolean;
};

/** For GET and HEAD. Throws Fault "not-found" before the response has begun. */
export async function blobResponse(answer: BlobAnswer): Promise<Response> {
  const { request, digest, mayCode = false } = answer;
  const { hash, sizeBytes } = must(parseDigest(digest), "a digest");
  const plainTag = `"${hash}"`;
  const range = rangeOf(request, sizeBytes, plainTag);
  const isCodable = mayCode && range === "all" && request.method === "GET";
  const coding = isCodable ? chosenCoding(request.headers.get("accept-encoding"), sizeBytes) : "identity";
  const etag = coding === "identity" ? plainTag : `"${hash}-${coding}"`;
  const headers = new Headers({
    "content-type": "application/octet-stream",
    ...answer.headers,
    etag,
    "accept-ranges": "bytes",
    ...(mayCode && { vary: "accept-encoding" }),
  });
  if (namesTag(request.headers.get("if-none-match"), hash)) {
    await beThere(answer);
    return new Response(null, { status: 304, headers });
  }
  if (range === "unsatisfiable") {
    headers.set("content-range", `bytes */${sizeBytes}`);
    return new Response(null, { status: 416, headers });
  }
  if (coding !== "identity") headers.set("content-encoding", coding);
  else headers.set("content-length", String(range === "all" ? sizeBytes : range.length));
  if (range !== "all")
    headers.set("content-range", `bytes ${range.offset}-${range.offset + range.length - 1}/${sizeBytes}`);
  const status = range === "all" ? 200 : 206;
  if (request.method === "HEAD") {
    await beThere(answer);
    return new Response(null, { status, headers });
  }
  return new Response(await bodyIn(coding, answer, range), { status, headers });
}

function rangeOf(request: Request, sizeBytes: number, tag: string): ReturnType<typeof readRange> {
  const condition = request.headers.get("if-range");
  if (request.method !== "GET" || (condition !== null && condition !== tag)) return "all";
  return readRange(request.headers.get("range"), sizeBytes);
}

const namesTag = (header: string | null, hash: string): boolean =>
  header !== null && (header.trim() === "*" || header.includes(`"${hash}"`) || header.includes(`"${hash}-`));

async function beThere({ blobs, digest }: BlobAnswer): Promise<void> {
  if ((await blobs.missing([digest])).length > 0) throw new Fault("not-found", "read blob", { digest });
}

async function bodyIn(
  coding: Coding,
  { blobs, digest }: BlobAnswer,
  range: { readonly offset: number; readonly length: number } | "all",
): Promise<ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>> {
  if (range === "all" && coding === "identity") {
    const atHand = blobs.prompt?.bytes(digest);
    if (atHand) return Uint8Array.from(atHand);
  }
  const parts = blobs.read(digest, range === "all" ? undefined : range, coding === "zstd" ? "zstd" : "plain");
  const iterator = parts[Symbol.asyncIterator]();
  const first = await iterator.next();
  const body = pulled(iterator, first);
  return coding === "gzip" ? gzipped(body) : body;
}

/** Parts are copied: a part is valid only until the next one, and a socket may hold it longer. */
function pulled(iterator: AsyncIterator<Uint8Array>, first: IteratorResult<Uint8Array>): ReadableStream<Uint8Array> {
  let next: IteratorResult<Uint8Array> | undefined = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = next ?? (await iterator.next());
        next = undefined;
        if (done === true) controller.close();
        else controller.enqueue(Uint8Array.from(value));
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

function gzipped(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const gzip = createGzip({ level: 1 });
  pipeline(Readable.from(body, { objectMode: false }), gzip, () => {});
  return Readable.toWeb(gzip) as ReadableStream<Uint8Array>;
}
