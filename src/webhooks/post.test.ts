/** What one attempt at a delivery does with an address that a tenant chose. */
import { deepEqual, equal, match } from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { test } from "node:test";
import { postBy, type PostRules } from "./post.ts";

const rules: PostRules = { http: true, privateAddresses: true, timeoutMs: 60_000 };
const never = new AbortController().signal;

async function served(answer: RequestListener) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    answer(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { asked, port, [Symbol.dispose]: () => void (server.closeAllConnections(), server.close()) };
}

test("a redirect is not followed, wherever it leads", async () => {
  using inner = await served((_, response) => response.end());
  using outer = await served((_, response) =>
    response.writeHead(307, { location: `http://127.0.0.1:${inner.port}/secret` }).end(),
  );
  const posted = await postBy(rules)(`http://127.0.0.1:${outer.port}/hook`, {}, "{}", never);
  deepEqual([posted, outer.asked, inner.asked], [{ status: 307, why: "answered 307" }, ["POST /hook"], []]);
});

test("a receiver that does not answer is given up, and one that answers without end is not listened to", async () => {
  using silent = await served(() => {});
  const { status, why } = await postBy({ ...rules, timeoutMs: 500 })(
    `http://127.0.0.1:${silent.port}/`,
    {},
    "{}",
    never,
  );
  deepEqual([status, why], [0, "no answer within 500 ms"]);
  using endless = await served((_, response) => {
    const more = (): void => void (response.destroyed || response.write("x".repeat(100_000), () => setImmediate(more)));
    more();
  });
  equal((await postBy(rules)(`http://127.0.0.1:${endless.port}/`, {}, "{}", never)).status, 200);
});

test("a name that leads to an address of a private network is not called", async () => {
  using inner = await served((_, response) => response.end());
  const post = postBy({ ...rules, privateAddresses: false });
  for (const host of [hostname(), "ip6-localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"]) {
    const posted = await Promise.try(() => post(`http://${host}:${inner.port}/`, {}, "{}", never)).catch(String);
    if (typeof posted === "string") match(posted, /private networks/);
    else equal(posted.status, 0, host);
  }
  deepEqual(inner.asked, []);
});
