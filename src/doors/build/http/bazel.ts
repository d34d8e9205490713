/**
 * Bazel's HTTP cache: `/ac/<hash>` for results of actions and `/cas/<hash>` for blobs, below any prefix, which is the
 * instance. Results are decoded: an invalid one is refused, and a result with missing blobs is a miss.
 */
import { digestText, parseDigest, type Digest, type DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { checkNamed, closureOf, type Closure } from "#doors/build/cache/closure.ts";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import { readNaming, type Form } from "./action-result.ts";
import { blobResponse } from "./blob-response.ts";
import { bodyParts, contentLength, tooLarge } from "#http/body.ts";
import { entryAt, forgetNamed, keyOf, type CacheCall, type CachePorts } from "./named.ts";
import { plainRefusal, type Protocol } from "./protocol.ts";
import { HttpRefusal, methodNotAllowed, requireFor } from "./refusal.ts";

const shape =
  /^((?:\/[A-Za-z0-9._~@+=:-]{1,100}){0,8})\/(ac|cas)\/([0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})$/;
const resultBytesMax = 16 * 1024 * 1024;

export const bazel: Protocol = {
  name: "bazel",
  // For a path that only looks like Bazel's, Bazel's protocol reports the error.
  owns: (path) => /\/(?:ac|cas)\/[^/]*$/.test(path),
  refuse: plainRefusal,
  async serve(ports, call) {
    const match = shape.exec(call.url.pathname);
    if (!match)
      throw new HttpRefusal(400, "write [/<instance>]/ac/<hash> or /cas/<hash>, the hash in lower-case hex digits");
    const [, instance = "", kind, hash = ""] = match;
    const blobName = { instance: instance.slice(1), hash, fn: functionOf(hash) };
    return kind === "ac" ? await actionCache(ports, call, blobName) : await blobCache(ports, call, blobName);
  },
};

type BlobName = { readonly instance: string; readonly hash: string; readonly fn: DigestFunction };

const functionOf = (hash: string): DigestFunction =>
  hash.length === 64 ? "sha256" : hash.length === 40 ? "sha1" : hash.length === 96 ? "sha384" : "sha512";

async function actionCache(ports: CachePorts, call: CacheCall, blobName: BlobName): Promise<Response> {
  const place = { space: ["ac-http", blobName.fn, blobName.instance].filter(Boolean).join("/"), name: blobName.hash };
  switch (call.request.method) {
    case "GET":
    case "HEAD": {
      const { digest, notes } = await entryAt(ports, call, place);
      const { blobs } = ports.store.forTenant(call.caller.tenant);
      const form = notes?.["form"] === "json" ? "json" : "protobuf";
      await beWhole(blobs, digest, blobName.fn, form);
      const type = form === "json" ? "application/json" : "application/octet-stream";
      return await blobResponse({
        request: call.request,
        blobs,
        digest,
        mayCode: true,
        headers: { "content-type": type },
      });
    }
    case "PUT":
      return await keepResult(ports, call, blobName, place);
    case "DELETE":
      return new Response(null, { status: (await forgetNamed(ports, call, place)) ? 204 : 404 });
    default:
      throw methodNotAllowed("GET, HEAD, PUT, DELETE");
  }
}

async function keepResult(
  ports: CachePorts,
  call: CacheCall,
  { fn }: BlobName,
  place: { readonly space: string; readonly name: string },
): Promise<Response> {
  const { request, caller } = call;
  requireFor(caller, "cache.write", "action-cache.write");
  const form = /^application\/json\b/i.test(request.headers.get("content-type") ?? "") ? "json" : "protobuf";
  const bytes = await gathered(bodyParts(request, { ...ports.limits, bytesMax: resultBytesMax }, ports.clock));
  try {
    checkNamed(readNaming(bytes, form), fn);
  } catch (error) {
    throw isGrpcError(error) ? new HttpRefusal(400, error.message, {}, error) : error;
  }
  const digest = digestOf(bytes);
  await ports.store.forTenant(caller.tenant).blobs.write(digest, bytes);
  const entry = { digest, principal: caller.principal, atMs: ports.clock.wallMs() };
  await ports.index.put(keyOf(call, place), form === "json" ? { ...entry, notes: { form } } : entry);
  return new Response(null, { status: 200 });
}

/** Throws HttpRefusal 404 unless everything that the result names exists; all of it counts as used. */
async function beWhole(blobs: BlobStore, result: Digest, fn: DigestFunction, form: Form): Promise<void> {
  let closure: Closure;
  try {
    closure = await closureOf(readNaming(await gathered(blobs.read(result), resultBytesMax), form), fn, blobs);
  } catch (error) {
    // A result that names a missing or invalid tree counts as a miss.
    if (!isFault(error, "not-found") && !isGrpcError(error, grpcCode.invalidArgument)) throw error;
    throw new HttpRefusal(404, "not all of what the result names is here", {}, error);
  }
  const gone = closure.size > 0 ? await blobs.missing(closure.digests()) : [];
  if (gone.length > 0) throw new HttpRefusal(404, `of what the result names, ${gone.length} blobs are not here`);
}

async function gathered(parts: AsyncIterable<Uint8Array>, bytesMax = Infinity): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const part of parts) {
    sizeBytes += part.length;
    if (sizeBytes > bytesMax) throw tooLarge(bytesMax);
    all.push(Uint8Array.from(part));
  }
  return Buffer.concat(all);
}

/**
 * A path has a blob's hash but not its size, which is part of its name in the store. A disk store knows the size; for
 * other stores a PUT leaves a note of the size under the hash, which does not promise that the blob still exists.
 */
async function blobCache(ports: CachePorts, call: CacheCall, blobName: BlobName): Promise<Response> {
  const { request, caller } = call;
  const { blobs, near = blobs } = ports.store.forTenant(caller.tenant);
  const place = { space: `cas-http/${blobName.fn}`, name: blobName.hash };
  switch (request.method) {
    case "GET":
    case "HEAD": {
      requireFor(caller, "cache.read");
      const empty = digestOf(new Uint8Array(), blobName.fn);
      if (empty.includes(blobName.hash)) return new Response(new Uint8Array()); // the empty blob always exists
      if (isOnlyIfCached(request)) return await nearBlob(request, near, blobName);
      const sizeBytes = blobs.prompt?.sizeOf?.(blobName.fn, blobName.hash);
      const digest =
        sizeBytes === undefined
          ? (await ports.index.get(keyOf(call, place)))?.digest
          : digestText(blobName.fn, blobName.hash, sizeBytes);
      if (digest === undefined) throw new HttpRefusal(404, "there is no blob with this hash");
      return await blobResponse({ request, blobs, digest, mayCode: true });
    }
    case "PUT": {
      requireFor(caller, "cache.write");
      const digest = await keepBlob(ports, call, blobs, blobName);
      const key = keyOf(call, place);
      const known = await ports.index.get(key);
      if (known?.digest !== digest)
        await ports.index.put(key, { digest, principal: caller.principal, atMs: ports.clock.wallMs() });
      return new Response(null, { status: 200 });
    }
    default:
      throw methodNotAllowed("GET, HEAD, PUT");
  }
}

const isOnlyIfCached = (request: Request): boolean =>
  (request.headers.get("cache-control") ?? "").split(",").some((word) => word.trim() === "only-if-cached");

/** For another node: only what this node itself has, so that nodes do not ask each other in circles. */
async function nearBlob(request: Request, near: BlobStore, { fn, hash }: BlobName): Promise<Response> {
  const sizeBytes = near.prompt?.sizeOf?.(fn, hash);
  if (sizeBytes === undefined) throw new HttpRefusal(504, "this node has no blob with this hash itself");
  return await blobResponse({ request, blobs: near, digest: digestText(fn, hash, sizeBytes), mayCode: true });
}

/** Directly into the store if its size is known beforehand, as it always is with Bazel. */
async function keepBlob(
  ports: CachePorts,
  { request, caller }: CacheCall,
  blobs: BlobStore,
  { fn, hash }: BlobName,
): Promise<Digest> {
  const sizeBytes = contentLength(request);
  const body = bodyParts(request, ports.limits, ports.clock);
  if (sizeBytes !== undefined && !request.headers.has("content-encoding")) {
    const digest = digestText(fn, hash, sizeBytes);
    await blobs.write(digest, body);
    return digest;
  }
  await using spooled = await ports.spool.take(body, caller, fn);
  if (parseDigest(spooled.digest)?.hash !== hash)
    throw new HttpRefusal(400, `the bytes have another digest: ${spooled.digest}`);
  await blobs.write(spooled.digest, spooled.content());
  return spooled.digest;
}
