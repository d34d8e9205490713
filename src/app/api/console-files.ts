/**
 * Serves the console's files: one page for every address of the console, and assets whose names change with their
 * content. Needs no credentials: the files are public, and the page gets its data from /v1 like any other client.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** No foreign sources, no inline scripts, no framing. */
export const pageHeaders = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

const codings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

export type ServeConsole = (request: Request) => Response | undefined;

/** `folder` is the output of `npm run console`; if it is missing, the page says how to make it. */
export async function openConsole(folder: string): Promise<ServeConsole> {
  const names = await readdir(folder).catch(() => []);
  const read = await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const));
  const files = new Map<string, Buffer>(read);
  return (request) => {
    const { pathname } = new URL(request.url);
    const name = fileOf(pathname);
    if (name === undefined) return undefined;
    if (request.method !== "GET" && request.method !== "HEAD")
      return new Response(null, { status: 405, headers: { allow: "GET, HEAD" } });
    return fileResponse(files, name, request);
  };
}

function fileOf(pathname: string): string | undefined {
  const asset = /^\/console\/assets\/([a-z]+-[0-9a-f]{16}\.[a-z]+)$/.exec(pathname)?.[1];
  if (asset !== undefined) return asset;
  return pathname === "/" || pathname === "/console" || pathname.startsWith("/console/") ? "index.html" : undefined;
}

function fileResponse(files: ReadonlyMap<string, Buffer>, name: string, { headers, method }: Request): Response {
  const accepted = headers.get("accept-encoding") ?? "";
  const [coding, suffix] = codings.find(([one, end]) => accepted.includes(one) && files.has(name + end)) ?? ["", ""];
  const bytes = files.get(name + suffix);
  const isPage = name === "index.html";
  if (!bytes)
    return isPage
      ? new Response("The console has not been built: run `npm run console`.\n", { status: 503, headers: pageHeaders })
      : new Response("not found\n", { status: 404, headers: pageHeaders });
  const extension = name.slice(name.lastIndexOf(".") + 1);
  return new Response(method === "HEAD" ? null : Uint8Array.from(bytes), {
    headers: {
      ...pageHeaders,
      "content-type": types[extension] ?? "application/octet-stream",
      "cache-control": isPage ? "no-cache" : "public, max-age=31536000, immutable",
      vary: "accept-encoding",
      ...(coding !== "" && { "content-encoding": coding }),
    },
  });
}
