import { equal } from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect as connectH2, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { test } from "node:test";
import { realClock as clock } from "#testing/real-clock.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { crossSiteProblem } from "#http/cross-site.ts";
import { startEdge } from "#edge/edge.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";

const site = "http://127.0.0.1:8980/v1/builds";
const evil = "http://evil.example:8980/v1/builds";

/** Method, address, origin of the page, with credentials or not: may it pass? */
const cases: readonly (readonly [string, string, string | null, boolean, boolean])[] = [
  ["POST", site, null, true, true],
  ["POST", site, "http://127.0.0.1:8980", true, true],
  ["POST", site, "http://evil.example", true, false],
  ["POST", site, "http://evil.example", false, false],
  ["POST", site, "http://127.0.0.1:3000", true, false],
  ["POST", site, "null", true, false],
  ["DELETE", site, "not an address", true, false],
  ["GET", site, "http://evil.example", true, true],
  ["GET", "http://localhost:8980/", null, true, true],
  ["GET", "http://node.localhost:8980/", null, true, true],
  ["GET", "http://[::1]:8980/", null, true, true],
  ["GET", evil, null, true, false],
  ["POST", evil, "http://evil.example:8980", true, false],
  ["POST", evil, "http://evil.example:8980", false, true],
  ["GET", "http://cache.example/", null, false, true],
];

for (const [method, url, origin, isUnproven, passes] of cases)
  test(`${method} ${url} from ${origin ?? "no page"}, ${isUnproven ? "un" : ""}proven: ${passes}`, () =>
    equal(crossSiteProblem({ method, url, origin, isUnproven }) === undefined, passes));

/** With a browser session: method, origin of the page: may it pass? */
const inSession: readonly (readonly [string, string | null, boolean])[] = [
  ["POST", "http://127.0.0.1:8980", true],
  ["POST", null, false],
  ["DELETE", null, false],
  ["POST", "http://127.0.0.1:3000", false],
  ["PUT", "http://localhost:8980", false],
  ["POST", "http://evil.example", false],
  ["GET", null, true],
];

for (const [method, origin, passes] of inSession)
  test(`${method} in a browser's session from ${origin ?? "no page"}: ${passes}`, () =>
    equal(crossSiteProblem({ method, url: site, origin, isUnproven: false, hasSession: true }) === undefined, passes));

test("another site's page cannot make a node that trusts its machine do anything", async () => {
  const reached: string[] = [];
  const secret = "a-token-that-is-long-enough-to-be-one-0123456789";
  const grant = { name: "ada", tenant: "a", roles: ["member"], sha256: tokenSha256(secret) };
  for (const tokens of [[], [grant]]) {
    const edge = await startEdge({
      clock,
      listen: [{ host: "127.0.0.1", port: 0 }],
      identity: Identity.parse({ tokens }),
      services: () => new Map(),
      http: () => ({
        async serve(asked) {
          reached.push(asked.method);
          return new Response("reached");
        },
      }),
      notReady: () => [],
      log: new Log(() => {}, clock),
      h2: { drainMs: 500 },
    });
    const port = edge.ports[0] ?? 0;
    const status = (method: string, headers: Record<string, string>): Promise<number | undefined> =>
      new Promise((resolve, reject) =>
        request({ port, host: "127.0.0.1", path: "/v1/builds", method, headers, agent: false }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on("error", reject)
          .end(),
      );
    equal(await status("POST", {}), 200);
    equal(await status("POST", { origin: `http://127.0.0.1:${port}` }), 200);
    equal(await status("POST", { origin: "https://evil.example", "content-type": "text/plain" }), 403);
    // If callers must show credentials, the host name they use does not matter.
    equal(await status("GET", { host: `evil.example:${port}` }), tokens.length === 0 ? 403 : 200);
    equal(await status("GET", { host: "cache.example", authorization: `Bearer ${secret}` }), 200);
    await edge.close();
  }
  equal(reached.join(), "POST,POST,GET,POST,POST,GET,GET");
});

test("the same is refused over HTTP/2, by authority or host", async () => {
  const edge = await startEdge({
    clock,
    listen: [{ host: "127.0.0.1", port: 0 }],
    identity: Identity.parse({}),
    services: () => new Map(),
    http: () => ({ serve: async () => new Response("reached") }),
    notReady: () => [],
    log: new Log(() => {}, clock),
    h2: { drainMs: 500 },
  });
  const here = `127.0.0.1:${edge.ports[0] ?? 0}`;
  const session = connectH2(`http://${here}`);
  const status = async (method: string, headers: OutgoingHttpHeaders): Promise<unknown> => {
    const stream = session.request({ ":method": method, ":path": "/v1/builds", ...headers });
    const [got] = (await once(stream, "response")) as [IncomingHttpHeaders];
    stream.close();
    return got[":status"];
  };
  try {
    const ours = { ":authority": here };
    equal(await status("POST", ours), 200);
    equal(await status("POST", { ...ours, origin: `http://${here}` }), 200);
    equal(await status("POST", { ...ours, origin: "https://evil.example" }), 403);
    equal(await status("GET", { ...ours, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }), 403);
    equal(await status("GET", { ...ours, "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }), 403);
    equal(await status("GET", { ...ours, "sec-fetch-site": "same-origin" }), 200);
    equal(await status("GET", { ":authority": "evil.example" }), 403);
    equal(await status("GET", { host: "evil.example" }), 403);
  } finally {
    session.destroy();
    await edge.close();
  }
});
