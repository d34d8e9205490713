/**
 * Gradle's HTTP build cache: GET and PUT of `<prefix>/<key>`. 404 is a miss and 413 an entry that is too large to keep;
 * after any other failure Gradle disables the cache for the rest of the build.
 */
import { keepNamed, notesFrom, serveNamed, type CacheCall, type CachePorts } from "./named.ts";
import { plainRefusal, segmentsBelow, type Protocol } from "./protocol.ts";
import { HttpRefusal, methodNotAllowed } from "./refusal.ts";

const mediaType = "application/vnd.gradle.build-cache-artifact.v1";

export const gradle: Protocol = {
  name: "gradle",
  owns: (path) => path.startsWith("/gradle/"),
  refuse: plainRefusal,
  async serve(ports: CachePorts, call: CacheCall): Promise<Response> {
    const { request, url } = call;
    const parts = segmentsBelow("/gradle/", url.pathname);
    const key = parts?.at(-1) ?? "";
    if (!parts || !/^[0-9a-zA-Z_-]{1,128}$/.test(key))
      throw new HttpRefusal(400, "a key is one word, such as 32 hex digits");
    const place = { space: ["gradle", ...parts.slice(0, -1)].join("/"), name: key };
    switch (request.method) {
      case "GET":
      case "HEAD":
        return await serveNamed(ports, call, place, ({ notes }) => ({
          "content-type": notes?.["content-type"] ?? mediaType,
        }));
      case "PUT":
        await keepNamed(ports, call, place, { notes: notesFrom(request.headers, ["content-type"], 200) });
        return new Response(null, { status: 204 });
      default:
        throw methodNotAllowed("GET, HEAD, PUT");
    }
  },
};
