/**
 * sccache's WebDAV storage: GET, HEAD, PUT and DELETE of files, and the part of folders that its client uses. Folders
 * exist implicitly, so MKCOL has nothing to do; PROPFIND lists them.
 */
import { digestSizeBytes } from "#base/digest.ts";
import type { Entry } from "#blobs/action-index.ts";
import { entryAt, forgetNamed, keepNamed, serveNamed, type CacheCall, type CachePorts, type Place } from "./named.ts";
import { plainRefusal, segmentsBelow, type Protocol } from "./protocol.ts";
import { HttpRefusal, methodNotAllowed, requireFor } from "./refusal.ts";
import { multistatus, type Resource } from "./multistatus.ts";

const root = "/sccache/";
const methods = "OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND, MKCOL";
const membersMax = 1_000;

export const sccache: Protocol = {
  name: "sccache",
  owns: (path) => path === "/sccache" || path.startsWith(root),
  refuse: plainRefusal,
  async serve(ports, call) {
    const { request, url } = call;
    const path = url.pathname === "/sccache" ? root : url.pathname;
    if (request.method === "OPTIONS") return new Response(null, { headers: { allow: methods, dav: "1" } });
    return path.endsWith("/") ? await folder(ports, call, path) : await file(ports, call, path);
  },
};

async function file(ports: CachePorts, call: CacheCall, path: string): Promise<Response> {
  const { request } = call;
  const place = placeOf(path);
  switch (request.method) {
    case "GET":
    case "HEAD":
      return await serveNamed(ports, call, place, ({ atMs }) => ({ "last-modified": new Date(atMs).toUTCString() }));
    case "PUT":
      await keepNamed(ports, call, place);
      return new Response(null, { status: 201 });
    case "DELETE":
      return new Response(null, { status: (await forgetNamed(ports, call, place)) ? 204 : 404 });
    case "PROPFIND": {
      const entry = await entryAt(ports, call, place);
      const gone = await ports.store.forTenant(call.caller.tenant).blobs.missing([entry.digest]);
      if (gone.length > 0) throw new HttpRefusal(404, "there is nothing under this key");
      return multistatus([asFile(path, entry)]);
    }
    case "MKCOL":
      return made(call);
    default:
      throw methodNotAllowed(methods);
  }
}

async function folder(ports: CachePorts, call: CacheCall, path: string): Promise<Response> {
  const { request, caller } = call;
  const parts = path === root ? [] : segmentsBelow(root, path.slice(0, -1));
  if (!parts) throw badPath();
  if (request.method === "MKCOL") return made(call);
  if (request.method !== "PROPFIND") throw methodNotAllowed("OPTIONS, PROPFIND, MKCOL");
  requireFor(caller, "action-cache.read");
  const self: Resource = { href: path };
  const depth = request.headers.get("depth") ?? "infinity";
  if (depth === "0") return multistatus([self]);
  if (depth !== "1") throw new HttpRefusal(403, "folders are listed to a depth of 0 or 1");
  const space = spaceOf(parts);
  const { entries, next } = await ports.index.list({ tenant: caller.tenant, spacePrefix: space, limit: membersMax });
  if (next !== undefined) throw new HttpRefusal(507, `there is more than ${membersMax} below this folder`);
  const folders = new Set<string>();
  const files: Resource[] = [];
  for (const entry of entries)
    if (entry.space === space) files.push(asFile(`${path}${entry.name}`, entry));
    else if (entry.space.startsWith(`${space}/`)) folders.add(entry.space.slice(space.length + 1).split("/")[0] ?? "");
  return multistatus([self, ...Array.from(folders, (name) => ({ href: `${path}${name}/` })), ...files]);
}

function made({ caller }: CacheCall): Response {
  requireFor(caller, "action-cache.write");
  return new Response(null, { status: 201 });
}

const asFile = (href: string, { digest, atMs }: Entry): Resource => ({
  href,
  file: { sizeBytes: digestSizeBytes(digest), atMs, etag: `"${digest.split("/")[0]}"` },
});

const spaceOf = (folders: readonly string[]): string => ["sccache", ...folders].join("/");

/** A folder is a space, so that it can be listed. */
function placeOf(path: string): Place {
  const parts = segmentsBelow(root, path);
  const name = parts?.at(-1);
  if (!parts || name === undefined || spaceOf(parts).length > 300) throw badPath();
  return { space: spaceOf(parts.slice(0, -1)), name };
}

const badPath = (): HttpRefusal => new HttpRefusal(400, "a path has letters, digits, dots, dashes and slashes");
