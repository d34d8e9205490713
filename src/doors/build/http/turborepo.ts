/** Turborepo's remote cache: `/v8/artifacts...`. Each team has a separate space, named by teamId or slug. */
import type { Entry } from "#blobs/action-index.ts";
import { digestSizeBytes } from "#base/digest.ts";
import { bodyParts } from "#http/body.ts";
import { findEntry, keepNamed, notesFrom, serveNamed, type CacheCall, type CachePorts } from "./named.ts";
import type { Protocol } from "./protocol.ts";
import { HttpRefusal, methodNotAllowed, requireFor } from "./refusal.ts";

const root = "/v8/artifacts";
/** Headers that are returned with an artifact as they were sent: how long it took to make, and its signature. */
const kept = ["x-artifact-duration", "x-artifact-tag", "x-artifact-sha", "x-artifact-dirty-hash"] as const;
const hashPattern = /^[0-9A-Za-z_-]{1,128}$/;

export const turborepo: Protocol = {
  name: "turborepo",
  owns: (path) => path === root || path.startsWith(`${root}/`),
  preflight: (request) => preflightFor(request),
  refuse: ({ status, message, headers }) =>
    Response.json({ error: { code: codes[status] ?? "bad_request", message } }, { status, headers }),
  async serve(ports, call) {
    const { pathname } = call.url;
    const { method } = call.request;
    if (pathname === root) return method === "POST" ? await query(ports, call) : refuse("POST");
    if (pathname === `${root}/status`) return method === "GET" ? status(call) : refuse("GET");
    if (pathname === `${root}/events`) return method === "POST" ? await events(ports, call) : refuse("POST");
    return await artifact(ports, call, pathname.slice(root.length + 1));
  },
};

const codes: Readonly<Record<number, string>> = {
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  405: "method_not_allowed",
  411: "length_required",
  413: "artifact_too_large",
  500: "internal_server_error",
  503: "service_unavailable",
  507: "insufficient_storage",
};

function refuse(allow: string): never {
  throw methodNotAllowed(allow);
}

/** `turbo --preflight` asks first which headers it may send. */
const preflightFor = (request: Request): Response | undefined =>
  request.method === "OPTIONS"
    ? new Response(null, {
        status: 204,
        headers: {
          "access-control-allow-methods": "GET, HEAD, PUT, POST, OPTIONS",
          "access-control-allow-headers": ["authorization", "content-type", "user-agent", ...kept].join(", "),
        },
      })
    : undefined;

function status({ caller }: CacheCall): Response {
  requireFor(caller, "action-cache.read");
  return Response.json({ status: "enabled" });
}

function spaceOf({ url }: CacheCall): string {
  const team = url.searchParams.get("teamId") ?? url.searchParams.get("slug") ?? "";
  if (!/^[0-9A-Za-z._-]{0,100}$/.test(team))
    throw new HttpRefusal(400, "a team's name has letters, digits, dots and dashes");
  return team === "" ? "turborepo" : `turborepo/${team}`;
}

async function artifact(ports: CachePorts, call: CacheCall, hash: string): Promise<Response> {
  const { request } = call;
  if (!hashPattern.test(hash)) throw new HttpRefusal(400, "an artifact's hash is one word of letters and digits");
  const place = { space: spaceOf(call), name: hash };
  switch (request.method) {
    case "GET":
    case "HEAD":
      return await serveNamed(ports, call, place, ({ notes = {} }) => notes);
    case "PUT": {
      await keepNamed(ports, call, place, { notes: notesFrom(request.headers, kept) });
      return Response.json({ urls: [`${call.url.origin}${root}/${hash}`] }, { status: 202 });
    }
    default:
      throw methodNotAllowed("GET, HEAD, PUT");
  }
}

const jsonBytesMax = 1024 * 1024;
const hashesMax = 1_000;

async function jsonOf(ports: CachePorts, call: CacheCall): Promise<unknown> {
  const parts: Uint8Array[] = [];
  for await (const part of bodyParts(call.request, { ...ports.limits, bytesMax: jsonBytesMax }, ports.clock))
    parts.push(Uint8Array.from(part));
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch (error) {
    throw new HttpRefusal(400, "the body is not JSON", {}, error);
  }
}

/** The client's statistics: read to the end and discarded. */
async function events(ports: CachePorts, call: CacheCall): Promise<Response> {
  requireFor(call.caller, "action-cache.read");
  if (!Array.isArray(await jsonOf(ports, call))) throw new HttpRefusal(400, "events are a list");
  return Response.json({});
}

async function query(ports: CachePorts, call: CacheCall): Promise<Response> {
  requireFor(call.caller, "action-cache.read");
  const document = (await jsonOf(ports, call)) as { hashes?: unknown } | null;
  const hashes = document?.hashes;
  if (!Array.isArray(hashes) || hashes.length > hashesMax || !hashes.every(isHash))
    throw new HttpRefusal(400, `hashes is a list of at most ${hashesMax} artifact hashes`);
  const space = spaceOf(call);
  const entries = await Promise.all(hashes.map((name) => findEntry(ports, call, { space, name })));
  const digests = entries.flatMap((entry) => (entry ? [entry.digest] : []));
  const gone = new Set(await ports.store.forTenant(call.caller.tenant).blobs.missing(digests));
  const descriptions = hashes.map((hash, i) => [hash, describe(entries[i], gone)] as const);
  return Response.json(Object.fromEntries(descriptions));
}

const isHash = (value: unknown): value is string => typeof value === "string" && hashPattern.test(value);

function describe(entry: Entry | undefined, gone: ReadonlySet<string>): object | null {
  if (!entry || gone.has(entry.digest)) return null;
  const tag = entry.notes?.["x-artifact-tag"];
  const taskDurationMs = Number(entry.notes?.["x-artifact-duration"] ?? 0) || 0;
  return { size: digestSizeBytes(entry.digest), taskDurationMs, ...(tag !== undefined && { tag }) };
}
