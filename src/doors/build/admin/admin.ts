/**
 * Cache administration, which no build tool's protocol covers: how full the cache is, what it contains, why something
 * missed, cleaning it up. JSON under /api/cache; `millrace cache` uses it.
 */
import type { Clock } from "#base/clock.ts";
import { isDigest, parseDigest } from "#base/digest.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import type { Upkeep } from "#blobs/upkeep.ts";
import { bodyOf, tooLarge, type BodyLimits } from "#doors/build/http/body.ts";
import type { HttpCaller, Identify } from "#doors/build/http/caller.ts";
import { asRefusal, decoded, HttpRefusal, methodNotAllowed, requireFor } from "#doors/build/http/refusal.ts";
import { parseRule } from "./rule-request.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { tell } from "#doors/build/why/difference.ts";
import { explainMiss } from "#doors/build/why/explain.ts";
import type { Seen } from "#doors/build/why/seen.ts";

export type AdminPorts = {
  readonly store: Store;
  readonly index: ActionIndex;
  readonly upkeep: Upkeep;
  readonly seen: Seen;
  readonly trust: TrustRules;
  readonly clock: Clock;
  readonly caller: Identify;
  /** For uploads. */
  readonly limits: BodyLimits;
  readonly report: (error: unknown) => void;
};

export const adminPrefix = "/api/cache/";

const entriesMax = 1_000;

/** Undefined for other paths. */
export function cacheAdmin(ports: AdminPorts): (request: Request) => Promise<Response> | undefined {
  return (request) => {
    const url = new URL(request.url);
    if (!url.pathname.startsWith(adminPrefix)) return undefined;
    return answer(ports, request, url).catch((error: unknown) => refused(ports, error));
  };
}

async function answer(ports: AdminPorts, request: Request, url: URL): Promise<Response> {
  const who = await ports.caller(request);
  if ("refused" in who) throw new HttpRefusal(who.refused.status, who.refused.message, who.refused.headers);
  const call = { request, url, caller: who.caller };
  const [what = "", ...rest] = url.pathname.slice(adminPrefix.length).split("/");
  const route = Object.hasOwn(adminRoutes, what) ? adminRoutes[what] : undefined;
  if (!route) throw new HttpRefusal(404, "there is nothing at this address");
  return await route(ports, call, rest);
}

type Route = (ports: AdminPorts, call: Call, rest: readonly string[]) => Response | Promise<Response>;

/** By the path segment after the prefix. */
export const adminRoutes: Readonly<Record<string, Route>> = {
  stat,
  why,
  misses,
  entries,
  blobs: (ports, call, rest) => blobs(ports, call, decoded(rest.join("/"))),
  gc,
  verify,
  rules,
};

type Call = { readonly request: Request; readonly url: URL; readonly caller: HttpCaller };

function only({ request }: Call, ...methods: readonly string[]): void {
  if (!methods.includes(request.method)) throw methodNotAllowed(methods.join(", "));
}

async function stat({ upkeep }: AdminPorts, call: Call): Promise<Response> {
  only(call, "GET");
  requireFor(call.caller, "store.look");
  return Response.json(await upkeep.stat());
}

async function why({ seen, store }: AdminPorts, call: Call): Promise<Response> {
  only(call, "GET");
  requireFor(call.caller, "names.read", "blobs.read");
  const { tenant } = call.caller;
  const instance = call.url.searchParams.get("instance") ?? "";
  const action = call.url.searchParams.get("action") ?? "";
  if (!isDigest(action)) throw new HttpRefusal(400, "say which action: ?action=HASH/SIZE");
  const explanation = await explainMiss({ tenant, instance, action }, seen, store.forTenant(tenant).blobs);
  return Response.json({ ...explanation, told: explanation.differences.map(tell) });
}

function misses({ seen }: AdminPorts, call: Call): Response {
  only(call, "GET");
  requireFor(call.caller, "names.read");
  const target = call.url.searchParams.get("target") ?? undefined;
  const limit = limitOf(call.url, 100);
  return Response.json({ misses: seen.recent(call.caller.tenant, limit, target) });
}

async function entries({ index }: AdminPorts, call: Call): Promise<Response> {
  only(call, "GET");
  requireFor(call.caller, "names.read");
  const spacePrefix = call.url.searchParams.get("space") ?? undefined;
  const after = call.url.searchParams.get("after") ?? undefined;
  const page = await index.list({
    tenant: call.caller.tenant,
    limit: limitOf(call.url, 100),
    ...(spacePrefix !== undefined && { spacePrefix }),
    ...(after !== undefined && { after }),
  });
  return Response.json(page);
}

function limitOf(url: URL, otherwise: number): number {
  const given = url.searchParams.get("limit");
  const limit = given === null ? otherwise : Number(given);
  if (Number.isInteger(limit) && limit >= 1 && limit <= entriesMax) return limit;
  throw new HttpRefusal(400, `limit: write a number from 1 to ${entriesMax}`);
}

async function blobs({ store, limits, clock }: AdminPorts, call: Call, digest: string): Promise<Response> {
  only(call, "GET", "PUT");
  const parts = parseDigest(digest);
  if (!parts) throw new HttpRefusal(400, "a blob is named HASH/SIZE, or FUNCTION:HASH/SIZE");
  const held = store.forTenant(call.caller.tenant).blobs;
  if (call.request.method === "GET") {
    requireFor(call.caller, "blobs.read");
    const [missing] = await held.missing([digest]);
    if (missing !== undefined) throw new HttpRefusal(404, "there is no such blob");
    const body = ReadableStream.from(copied(held.read(digest)));
    return new Response(body, { headers: { "content-length": `${parts.sizeBytes}`, "content-type": octets } });
  }
  requireFor(call.caller, "blobs.write");
  if (parts.sizeBytes > limits.bytesMax) throw tooLarge(limits.bytesMax);
  await held.write(digest, bodyOf(call.request, limits, clock));
  return new Response(undefined, { status: 204 });
}

const octets = "application/octet-stream";

/** The store reuses a part's memory when the next part is requested; a response keeps it longer. */
async function* copied(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const part of parts) yield Uint8Array.from(part);
}

async function gc({ upkeep }: AdminPorts, call: Call): Promise<Response> {
  only(call, "POST");
  requireFor(call.caller, "store.tend");
  const given = call.url.searchParams.get("downTo");
  const downTo = given === null || given === "" ? Number.NaN : Number(given);
  if (!(Number.isSafeInteger(downTo) && downTo >= 0))
    throw new HttpRefusal(400, "say how many bytes may stay: ?downTo=BYTES");
  return Response.json(await upkeep.evict(downTo));
}

function verify({ upkeep }: AdminPorts, call: Call): Response {
  only(call, "POST");
  requireFor(call.caller, "store.tend");
  const lines = async function* (): AsyncGenerator<Uint8Array> {
    for await (const told of upkeep.verify(call.request.signal)) yield Buffer.from(`${JSON.stringify(told)}\n`);
  };
  return new Response(ReadableStream.from(lines()), { headers: { "content-type": "application/x-ndjson" } });
}

/** Callers that may write results may also revoke them. */
async function rules({ trust, clock }: AdminPorts, call: Call, [id]: readonly string[]): Promise<Response> {
  only(call, "GET", "POST", "DELETE");
  const { tenant, principal } = call.caller;
  const by = { principal, atMs: clock.wallMs() };
  if (call.request.method === "GET") {
    requireFor(call.caller, "names.read");
    return Response.json({ rules: await trust.list(tenant) });
  }
  requireFor(call.caller, "names.write");
  if (call.request.method === "POST") {
    const rule = parseRule(call.url.searchParams, by.atMs);
    return Response.json({ id: await trust.revoke(tenant, rule, by), rule });
  }
  if (id === undefined || !(await trust.lift(tenant, id, by))) throw new HttpRefusal(404, "there is no such rule");
  return new Response(undefined, { status: 204 });
}

function refused({ report }: AdminPorts, error: unknown): Response {
  const refusal = asRefusal(error);
  if (!refusal) report(error);
  const { status, message, headers } = refusal ?? new HttpRefusal(500, "this is a bug of ours");
  const body = { status, title: message };
  return Response.json(body, { status, headers: { ...headers, "content-type": "application/problem+json" } });
}
