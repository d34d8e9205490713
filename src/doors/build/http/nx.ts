/** Nx's self-hosted remote cache: `/v1/cache/<hash>`. An entry never changes: a second PUT is 409. */
import { contentLength } from "#http/body.ts";
import { isBelieved, keepNamed, keyOf, serveNamed, type CacheCall, type CachePorts, type Place } from "./named.ts";
import type { Protocol } from "./protocol.ts";
import { HttpRefusal, methodNotAllowed, requireFor } from "./refusal.ts";

const below = "/v1/cache/";

export const nx: Protocol = {
  name: "nx",
  owns: (path) => path.startsWith(below),
  // Nx compares the whole header: with a charset in it, it blames the server instead of the token.
  refuse: ({ status, message, headers }) =>
    new Response(`${message}\n`, { status, headers: { ...headers, "content-type": "text/plain" } }),
  async serve(ports: CachePorts, call: CacheCall): Promise<Response> {
    const { request, url } = call;
    const hash = url.pathname.slice(below.length);
    if (!/^[0-9A-Za-z_-]{1,128}$/.test(hash)) throw new HttpRefusal(400, "a hash is one word of letters and digits");
    const place = { space: "nx", name: hash };
    switch (request.method) {
      case "GET":
      case "HEAD":
        return await serveNamed(ports, call, place);
      case "PUT":
        return await keepOnce(ports, call, place);
      default:
        throw methodNotAllowed("GET, HEAD, PUT");
    }
  },
};

async function keepOnce(ports: CachePorts, call: CacheCall, place: Place): Promise<Response> {
  requireFor(call.caller, "cache.write", "action-cache.write");
  if (contentLength(call.request) === undefined) throw new HttpRefusal(411, "say content-length");
  const key = keyOf(call, place);
  const there = await ports.index.get(key);
  const { blobs } = ports.store.forTenant(call.caller.tenant);
  // A name whose bytes were evicted, or that was revoked, no longer counts.
  if (there && (await blobs.missing([there.digest])).length === 0 && (await isBelieved(ports, key, there)))
    throw existsAlready();
  const isKept = await keepNamed(ports, call, place, { ifVersion: there?.version ?? 0 });
  if (!isKept) throw existsAlready();
  return new Response("Successfully uploaded the output\n", { status: 202, headers: { "content-type": "text/plain" } });
}

const existsAlready = (): HttpRefusal => new HttpRefusal(409, "Cannot override an existing record");
