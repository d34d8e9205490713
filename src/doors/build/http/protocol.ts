/** What the caches of the different tools have in common: a name, their paths, and their form of refusals. */
import type { CacheCall, CachePorts } from "./named.ts";
import type { Problem } from "#http/problem.ts";

export type Protocol = {
  readonly name: string;
  /** Whether requests to this path (decoded, with its leading slash) belong to it. */
  owns(path: string): boolean;
  serve(ports: CachePorts, call: CacheCall): Promise<Response>;
  /** Before authentication, if the protocol needs that. */
  preflight?(request: Request): Response | undefined;
  refuse(refusal: Problem): Response;
};

export const plainRefusal = ({ status, message, headers }: Problem): Response =>
  new Response(`${message}\n`, { status, headers: { ...headers, "content-type": "text/plain; charset=utf-8" } });

export const pathOf = (url: URL): string => url.pathname;

const segment = /^[A-Za-z0-9._~@+=:-]{1,200}$/;

/** The segments of a path below a prefix, or undefined for another path. */
export function segmentsBelow(prefix: string, path: string): readonly string[] | undefined {
  if (!path.startsWith(prefix)) return undefined;
  const parts = path.slice(prefix.length).split("/");
  if (path.length > 400 || parts.some((part) => !segment.test(part) || part === "." || part === "..")) return undefined;
  return parts;
}
