/**
 * Addresses of version 0.1, before everything moved to /v1. They answer 308 until version 0.3, so that scripts and
 * older programs go on working: method and body are sent again to the new address.
 */
const moved: readonly (readonly [from: string, to: string])[] = [
  ["/api/builds", "/v1/builds"],
  ["/api/cache", "/v1/build-cache"],
  ["/api/login", "/v1/session/link"],
  ["/api/node/drain", "/v1/node/drain"],
  ["/api/why", "/v1/why"],
];

/** Undefined for an address that never was one. */
export function movedTo({ url }: Request): Response | undefined {
  const { pathname, search } = new URL(url);
  const found = moved.find(([from]) => pathname === from || pathname.startsWith(`${from}/`));
  if (!found) return undefined;
  const [from, to] = found;
  const location = `${to}${pathname.slice(from.length)}${search}`;
  const title = `this address has moved to ${to}; version 0.3 will not know it any more`;
  return Response.json(
    { status: 308, title },
    { status: 308, headers: { location, "content-type": "application/problem+json", deprecation: "true" } },
  );
}
