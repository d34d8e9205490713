/** The cache service, version 1: REST, with numbered uploads in chunks. Older actions use it. */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { must } from "#base/assert.ts";
import { parseDigest } from "#base/digest.ts";
import { bodyBytes, bodyIdleMsDefault, bodyParts, parseJsonBody } from "#http/body.ts";
import { Problem } from "#http/problem.ts";
import type { BlockUploads } from "#doors/ci/services/block-uploads.ts";
import type { Caches } from "./caches.ts";
import { cacheDownload } from "./cache-twirp.ts";
import type { JobIdentity } from "#doors/ci/services/job-token.ts";
import { requestBytesMax, type ServiceLimits } from "#doors/ci/services/limits.ts";
import type { Signed } from "#doors/ci/services/signed-address.ts";
import { Text } from "#doors/ci/services/twirp.ts";

export type CacheV1Ports = {
  readonly caches: Caches;
  readonly uploads: BlockUploads;
  readonly clock: Clock;
  readonly limits: ServiceLimits;
  readonly sign: (origin: string, signed: Signed) => Promise<string>;
};

export const cacheV1Prefix = "/_apis/artifactcache/";

type CacheRequest = {
  readonly request: Request;
  readonly url: URL;
  readonly job: JobIdentity;
  readonly origin: string;
};

const Reserve = z.object({ key: Text, version: Text, cacheSize: z.number().int().nonnegative().nullish() });
const Commit = z.object({ size: z.number().int().nonnegative() });
const chunkDigits = 15;

export async function serveCacheV1(ports: CacheV1Ports, cacheCall: CacheRequest): Promise<Response> {
  const path = cacheCall.url.pathname.slice(cacheV1Prefix.length);
  const id = /^caches\/(\d{1,15})$/.exec(path)?.[1];
  switch (`${cacheCall.request.method} ${id === undefined ? path : "caches/{id}"}`) {
    case "GET cache":
      return await find(ports, cacheCall);
    case "GET caches":
      return await list(ports, cacheCall);
    case "POST caches":
      return await reserve(ports, cacheCall);
    case "PATCH caches/{id}":
      return await chunk(ports, cacheCall, id ?? "");
    case "POST caches/{id}":
      return await commit(ports, cacheCall, id ?? "");
    default:
      throw new Problem(404, "the cache service has no such call");
  }
}

async function find({ caches, sign }: CacheV1Ports, { url, job, origin }: CacheRequest): Promise<Response> {
  const keys = (url.searchParams.get("keys") ?? "").split(",");
  const found = await caches.find(job, keys, url.searchParams.get("version") ?? "");
  if (!found) return new Response(null, { status: 204 });
  const archiveLocation = await sign(origin, cacheDownload(job.tenant, found));
  const creationTime = new Date(found.createdAtMs).toISOString();
  return Response.json({ cacheKey: found.key, scope: found.ref, creationTime, archiveLocation });
}

async function list({ caches }: CacheV1Ports, { url, job }: CacheRequest): Promise<Response> {
  const key = url.searchParams.get("key") ?? "";
  const all = await caches.list(job.tenant, job.repository);
  const wanted = all.filter((entry) => entry.key.startsWith(key) && job.cacheRefs.includes(entry.ref));
  const artifactCaches = wanted.map((entry) => ({
    cacheKey: entry.key,
    scope: entry.ref,
    cacheVersion: entry.version,
    creationTime: new Date(entry.createdAtMs).toISOString(),
  }));
  return Response.json({ totalCount: wanted.length, artifactCaches });
}

async function reserve({ caches, clock }: CacheV1Ports, { request, job }: CacheRequest): Promise<Response> {
  const given = parseJsonBody(await small(request, clock), Reserve);
  const begun = await caches.begin(job, given, given.cacheSize ?? 0);
  if (!begun) throw new Problem(409, `a cache with the key ${given.key} exists already, or is being saved`);
  return Response.json({ cacheId: begun.saving }, { status: 201 });
}

/** A chunk is a block that is called by its place. */
async function chunk(ports: CacheV1Ports, { request, job }: CacheRequest, id: string): Promise<Response> {
  const { caches, uploads, clock, limits } = ports;
  const range = /^bytes (\d{1,15})-(\d{1,15})\/(?:\*|\d{1,15})$/.exec(request.headers.get("content-range") ?? "");
  if (!range) throw new Problem(400, "content-range: bytes <first>-<last>/* is expected");
  const [first, last] = [Number(range[1]), Number(range[2])];
  if (last < first || last - first >= limits.blockBytesMax)
    throw new Problem(400, "content-range: not a range that is accepted");
  const { upload } = await caches.saving(job, id);
  const bytes = bodyParts(request, { bytesMax: last - first + 1, idleMs: bodyIdleMsDefault }, clock);
  await uploads.putBlock(upload, String(first).padStart(chunkDigits, "0"), bytes, last - first + 1);
  return new Response(null, { status: 204 });
}

async function commit(ports: CacheV1Ports, { request, job }: CacheRequest, id: string): Promise<Response> {
  const { caches, uploads, clock } = ports;
  const { size } = parseJsonBody(await small(request, clock), Commit);
  const { entry, upload } = await caches.saving(job, id);
  const blocks = await uploads.blocks(upload);
  const names = [...blocks.keys()].toSorted();
  let at = 0;
  for (const name of names) {
    if (Number(name) !== at) throw new Problem(400, `the chunks leave a gap, or overlap, at byte ${at}`);
    at += must(parseDigest(blocks.get(name) ?? ""), "a digest").sizeBytes;
  }
  await uploads.commit(upload, names);
  await caches.finalize(job, entry, size);
  return new Response(null, { status: 204 });
}

const small = (request: Request, clock: Clock): Promise<Buffer> =>
  bodyBytes(request, { bytesMax: requestBytesMax, idleMs: bodyIdleMsDefault }, clock);
