/**
 * Bytes that were uploaded in parts: they stay the parts that they came in, equal parts are stored once, and they are
 * read as one. A long list of parts is a blob of its own.
 */
import { createHash } from "node:crypto";
import { must } from "#base/assert.ts";
import { parseDigest, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { readRange } from "#http/range.ts";

export type Content = {
  readonly sizeBytes: number;
  /** In order; or, where they are many, one blob with a digest a line. */
  readonly parts: readonly Digest[] | Digest;
};

const partsInline = 20;
const listBytesMax = 4 * 1024 * 1024;

const sizeOf = (digest: Digest): number => must(parseDigest(digest), "a digest").sizeBytes;

export async function contentOf(blobs: BlobStore, parts: readonly Digest[]): Promise<Content> {
  const sizeBytes = parts.reduce((sum, part) => sum + sizeOf(part), 0);
  if (parts.length <= partsInline) return { sizeBytes, parts };
  const list = Buffer.from(parts.join("\n"));
  const digest = digestOf(list);
  await blobs.write(digest, list);
  return { sizeBytes, parts: digest };
}

export async function partsOf(blobs: BlobStore, { parts }: Content): Promise<readonly Digest[]> {
  if (typeof parts !== "string") return parts;
  const read: Uint8Array[] = [];
  if (sizeOf(parts) > listBytesMax) throw new Fault("corrupt", "read a list of parts", { digest: parts });
  for await (const bytes of blobs.read(parts)) read.push(Uint8Array.from(bytes));
  return Buffer.concat(read).toString().split("\n");
}

/** All blobs of it stay for this long. Throws Fault "not-found" if one of them is gone. */
export async function keepContent(blobs: BlobStore, content: Content, forMs: number): Promise<void> {
  const list = typeof content.parts === "string" ? [content.parts] : [];
  const digests = [...new Set([...(await partsOf(blobs, content)), ...list])];
  const kept = await blobs.pin(digests, forMs);
  if ("missing" in kept) throw new Fault("not-found", "keep an upload", { parts: kept.missing.length });
}

export async function* readContent(
  blobs: BlobStore,
  content: Content,
  { offset, length }: { readonly offset: number; readonly length: number } = { offset: 0, length: content.sizeBytes },
): AsyncGenerator<Uint8Array> {
  let [skip, left] = [offset, length];
  for (const part of await partsOf(blobs, content)) {
    if (left === 0) return;
    const sizeBytes = sizeOf(part);
    if (skip >= sizeBytes) {
      skip -= sizeBytes;
      continue;
    }
    const taken = Math.min(sizeBytes - skip, left);
    yield* blobs.read(part, { offset: skip, length: taken });
    left -= taken;
    skip = 0;
  }
}

/** The SHA-256 of the whole, in hex digits. */
export async function hashOf(blobs: BlobStore, content: Content): Promise<string> {
  const hash = createHash("sha256");
  for await (const bytes of readContent(blobs, content)) hash.update(bytes);
  return hash.digest("hex");
}

/** The answer to GET and HEAD, with ranges. */
export function contentResponse(
  { method, headers: requestHeaders }: Request,
  blobs: BlobStore,
  content: Content,
  more: Readonly<Record<string, string>>,
): Response {
  const { sizeBytes } = content;
  const range = method === "GET" ? readRange(requestHeaders.get("range"), sizeBytes) : "all";
  const headers = new Headers({ ...more, "accept-ranges": "bytes", "x-content-type-options": "nosniff" });
  if (range === "unsatisfiable") {
    headers.set("content-range", `bytes */${sizeBytes}`);
    return new Response(null, { status: 416, headers });
  }
  const { offset, length } = range === "all" ? { offset: 0, length: sizeBytes } : range;
  headers.set("content-length", String(length));
  if (range !== "all") headers.set("content-range", `bytes ${offset}-${offset + length - 1}/${sizeBytes}`);
  const body = method === "HEAD" ? null : copied(readContent(blobs, content, { offset, length }));
  return new Response(body, { status: range === "all" ? 200 : 206, headers });
}

/** A part of a blob is valid until the next is read, and a socket may hold it for longer. */
function copied(parts: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await parts.next();
        if (done === true) controller.close();
        else controller.enqueue(Uint8Array.from(value));
      },
      async cancel() {
        await parts.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
