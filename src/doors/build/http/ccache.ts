/**
 * ccache's HTTP storage in all its layouts: `ac/<64 hex>` (bazel), `ab/cdef...` (subdirs), `abcdef...` (flat). Its
 * entries are raw bytes of its own format, also below `ac/`, so it has a separate space and nothing in it is decoded.
 */
import { forgetNamed, keepNamed, serveNamed, type CacheCall, type CachePorts } from "./named.ts";
import { plainRefusal, segmentsBelow, type Protocol } from "./protocol.ts";
import { HttpRefusal, methodNotAllowed } from "./refusal.ts";

export const ccache: Protocol = {
  name: "ccache",
  owns: (path) => path.startsWith("/ccache/"),
  refuse: plainRefusal,
  async serve(ports: CachePorts, call: CacheCall): Promise<Response> {
    const { request, url } = call;
    const parts = segmentsBelow("/ccache/", url.pathname);
    if (!parts) throw new HttpRefusal(400, "a key has letters, digits, dashes and slashes");
    const place = { space: "ccache", name: parts.join("/") };
    switch (request.method) {
      case "GET":
      case "HEAD":
        return await serveNamed(ports, call, place);
      case "PUT":
        await keepNamed(ports, call, place);
        return new Response(null, { status: 201 });
      case "DELETE":
        return new Response(null, { status: (await forgetNamed(ports, call, place)) ? 204 : 404 });
      default:
        throw methodNotAllowed("GET, HEAD, PUT, DELETE");
    }
  },
};
