/** Serves /v1/build-cache. */
import type { Clock } from "#base/clock.ts";
import { isDigest, parseDigest } from "#base/digest.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import type { Upkeep } from "#blobs/upkeep.ts";
import { buildRoute } from "#doors/build/http/problems.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { tell } from "#doors/build/why/difference.ts";
import { explainMiss } from "#doors/build/why/explain.ts";
import type { Seen } from "#doors/build/why/seen.ts";
import { tooLarge } from "#http/body.ts";
import { Problem } from "#http/problem.ts";
import type { Route } from "#http/route.ts";
import * as cache from "./endpoints.ts";
import { parseRule } from "./rule-request.ts";

export type AdminPorts = {
  readonly store: Store;
  readonly index: ActionIndex;
  readonly upkeep: Upkeep;
  readonly seen: Seen;
  readonly trust: TrustRules;
  readonly clock: Clock;
  /** Of a blob that is uploaded. */
  readonly blobBytesMax: number;
};

export const cacheRoutes = (ports: AdminPorts): readonly Route[] => [
  ...lookRoutes(ports),
  ...blobRoutes(ports),
  ...upkeepRoutes(ports),
  ...ruleRoutes(ports),
];

const lookRoutes = ({ index, seen, store }: AdminPorts): readonly Route[] => [
  buildRoute(cache.cacheWhy, async ({ query: { action, instance }, tenant }) => {
    if (!isDigest(action)) throw new Problem(400, "say which action: ?action=HASH/SIZE");
    const explanation = await explainMiss({ tenant, instance, action }, seen, store.forTenant(tenant).blobs);
    return { body: { ...explanation, lines: explanation.differences.map(tell) } };
  }),
  buildRoute(cache.cacheMisses, ({ query: { target, limit }, tenant }) => ({
    body: { misses: seen.recent(tenant, limit, target).map((miss) => ({ ...miss })) },
  })),
  buildRoute(cache.cacheEntries, async ({ query: { space, after, limit }, tenant }) => {
    const { entries, next } = await index.list({
      tenant,
      limit,
      ...(space !== undefined && { spacePrefix: space }),
      ...(after !== undefined && { after }),
    });
    return { body: { entries: entries.map((entry) => ({ ...entry })), ...(next !== undefined && { next }) } };
  }),
];

const blobRoutes = ({ store, blobBytesMax }: AdminPorts): readonly Route[] => [
  buildRoute(cache.readBlob, async ({ params: { digest }, tenant }) => {
    const { sizeBytes } = digestParts(digest);
    const { blobs } = store.forTenant(tenant);
    const [missing] = await blobs.missing([digest]);
    if (missing !== undefined) throw new Problem(404, "there is no such blob");
    return { headers: { "content-length": `${sizeBytes}` }, body: copied(blobs.read(digest)) };
  }),
  buildRoute(cache.writeBlob, async ({ params: { digest }, body, tenant }) => {
    if (digestParts(digest).sizeBytes > blobBytesMax) throw tooLarge(blobBytesMax);
    await store.forTenant(tenant).blobs.write(digest, body);
    return undefined;
  }),
];

const upkeepRoutes = ({ upkeep }: AdminPorts): readonly Route[] => [
  buildRoute(cache.cacheStat, async () => ({ body: await upkeep.stat() })),
  buildRoute(cache.evictBlobs, async ({ query: { downTo: given = "" } }) => {
    const downTo = given === "" ? Number.NaN : Number(given);
    if (!(Number.isSafeInteger(downTo) && downTo >= 0))
      throw new Problem(400, "say how many bytes may stay: ?downTo=BYTES");
    return { body: await upkeep.evict(downTo) };
  }),
  buildRoute(cache.verifyBlobs, ({ signal }) => ({ body: upkeep.verify(signal) })),
];

/** Callers that may write results may also revoke them. */
const ruleRoutes = ({ trust, clock }: AdminPorts): readonly Route[] => [
  buildRoute(cache.listRules, async ({ tenant }) => {
    const rules = await trust.list(tenant);
    return { body: { rules: rules.map(({ rule, ...named }) => ({ ...named, rule: { ...rule } })) } };
  }),
  buildRoute(cache.addRule, async ({ url, caller, tenant }) => {
    const by = { principal: caller.principal.name, atMs: clock.wallMs() };
    const rule = parseRule(url.searchParams, by.atMs);
    return { body: { id: await trust.revoke(tenant, rule, by), rule: { ...rule } } };
  }),
  buildRoute(cache.liftRule, async ({ params: { id }, caller, tenant }) => {
    const by = { principal: caller.principal.name, atMs: clock.wallMs() };
    if (!(await trust.lift(tenant, id, by))) throw new Problem(404, "there is no such rule");
    return undefined;
  }),
];

function digestParts(digest: string): { readonly sizeBytes: number } {
  const parts = parseDigest(digest);
  if (!parts) throw new Problem(400, "a blob is named HASH/SIZE, or FUNCTION:HASH/SIZE");
  return parts;
}

/** The store reuses a part's memory when the next part is requested; a response keeps it longer. */
async function* copied(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const part of parts) yield Uint8Array.from(part);
}
