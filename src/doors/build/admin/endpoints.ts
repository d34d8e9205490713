/**
 * Cache administration, which no build tool's protocol covers: how full the cache is, what it contains, why something
 * missed, cleaning it up. `millrace cache` uses it. (Nx owns /v1/cache.)
 */
import { z } from "zod";
import { endpoint, json, lines, none } from "#http/endpoint.ts";

const StoreStat = z.object({
  blobs: z.number(),
  entries: z.number().describe("Names: results of actions, keys of build tools."),
  usedBytes: z.number(),
  reservedBytes: z.number().describe("Promised to uploads that are under way."),
  sizeBytesMax: z.number(),
  indexBytes: z.number().describe("Memory that the index takes."),
  oldestUseAtMs: z.number().optional().describe("When the blob that is evicted next was last used."),
  evictedBlobs: z.number().describe("Since the start."),
  evictedBytes: z.number(),
  damagedBlobs: z.number().describe("Damaged blobs that were found and dropped since the start."),
  scrubbedAtMs: z.number().optional().describe("When the scrubber last read the whole store."),
});

const limit = z.coerce.number().int().min(1).max(1_000).default(100).describe("How many at most.");
const digest = z.string().max(300).describe("HASH/SIZE, or FUNCTION:HASH/SIZE.");
const text = z.string().max(1_000).optional();

export const cacheStat = endpoint({
  method: "GET",
  path: "/v1/build-cache/stat",
  action: "cluster.read",
  about: "Says how full this node's store is.",
  answer: json(StoreStat),
});

export const cacheWhy = endpoint({
  method: "GET",
  path: "/v1/build-cache/why",
  action: "action-cache.read",
  about: "Explains why an action missed, by what changed since it was last stored.",
  query: z.object({ action: digest.default(""), instance: z.string().max(1_000).default("") }),
  answer: json(z.looseObject({ lines: z.array(z.string()).describe("The differences in words.") })),
});

export const cacheMisses = endpoint({
  method: "GET",
  path: "/v1/build-cache/misses",
  action: "action-cache.read",
  about: "Lists the last misses that this node saw.",
  query: z.object({ target: text, limit }),
  answer: json(z.object({ misses: z.array(z.looseObject({ action: z.string() })) })),
});

export const cacheEntries = endpoint({
  method: "GET",
  path: "/v1/build-cache/entries",
  action: "action-cache.read",
  about: "Lists what is in the caches, by name.",
  query: z.object({ space: text, after: text.describe("`next` of the page before."), limit }),
  answer: json(
    z.object({
      entries: z.array(z.looseObject({ space: z.string(), name: z.string(), digest: z.string() })),
      next: z.string().optional(),
    }),
  ),
});

export const readBlob = endpoint({
  method: "GET",
  path: "/v1/build-cache/blobs/{digest+}",
  action: "cache.read",
  about: "Reads a blob.",
  params: z.object({ digest }),
  answer: { kind: "bytes", contentType: "application/octet-stream" },
});

export const writeBlob = endpoint({
  method: "PUT",
  path: "/v1/build-cache/blobs/{digest+}",
  action: "cache.write",
  about: "Uploads a blob. Its bytes must have the digest.",
  params: z.object({ digest }),
  body: { kind: "bytes", bytesMax: Number.MAX_SAFE_INTEGER }, // the node's build.blobMax is checked by the handler
  answer: none,
});

export const evictBlobs = endpoint({
  method: "POST",
  path: "/v1/build-cache/gc",
  action: "cluster.admin",
  about: "Evicts what was not used for the longest time, down to so many bytes.",
  query: z.object({ downTo: z.string().max(20).optional().describe("How many bytes may stay.") }),
  answer: json(StoreStat),
});

export const verifyBlobs = endpoint({
  method: "POST",
  path: "/v1/build-cache/verify",
  action: "cluster.admin",
  about: "Reads every blob against its digest, drops those that are wrong, and says how far it is.",
  answer: lines(
    z.object({ checked: z.number(), of: z.number(), bytes: z.number(), wrong: z.array(z.string()).readonly() }),
  ),
});

const Rule = z.looseObject({ kind: z.string(), untilMs: z.number(), why: z.string() });

export const listRules = endpoint({
  method: "GET",
  path: "/v1/build-cache/rules",
  action: "action-cache.read",
  about: "Lists the rules by which results are no longer served.",
  answer: json(z.object({ rules: z.array(z.looseObject({ id: z.string(), rule: Rule })) })),
});

export const addRule = endpoint({
  method: "POST",
  path: "/v1/build-cache/rules",
  action: "action-cache.write",
  about: "Takes results back: those of a principal, of a space, of one name, or all, written in a span of time.",
  query: z.object({
    principal: text,
    space: text,
    name: text,
    all: text,
    last: text,
    from: text,
    until: text,
    why: text,
  }),
  answer: json(z.object({ id: z.string(), rule: Rule })),
});

export const liftRule = endpoint({
  method: "DELETE",
  path: "/v1/build-cache/rules/{id}",
  action: "action-cache.write",
  about: "Lifts a rule: what it took back is served again.",
  params: z.object({ id: z.string().max(100) }),
  answer: none,
});

export const cacheEndpoints = [
  cacheStat,
  cacheWhy,
  cacheMisses,
  cacheEntries,
  readBlob,
  writeBlob,
  evictBlobs,
  verifyBlobs,
  listRules,
  addRule,
  liftRule,
] as const;
