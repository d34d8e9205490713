import { deepEqual, equal, match } from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { WebSocket } from "ws";
import { z } from "zod";
import { principal } from "#access/principal.ts";
import { unauthenticated } from "#access/refusal.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { endpoint, socket } from "#http/endpoint.ts";
import { memoryEntries } from "#base/memory-entries.ts";
import { keptAnswersIn } from "#http/kept-answers.ts";
import { until } from "#testing/until.ts";
import { route } from "#http/route.ts";
import type { Identify } from "#http/serve.ts";
import { serveSockets } from "./upgrade.ts";

const echo = endpoint({
  method: "GET",
  path: "/v1/echo/{name}",
  action: "work.read",
  about: "Says it back.",
  params: z.object({ name: z.string().max(5) }),
  answer: socket(z.object({ say: z.string() }), z.object({ said: z.string() })),
});

const clock = new ManualClock();
const reported: unknown[] = [];
const left: string[] = [];
const { upgrade: serve } = serveSockets(
  [
    route(echo, ({ params, signal }) => ({
      async body({ messages, send }) {
        for await (const { say } of messages) {
          if (say === "wait") signal.addEventListener("abort", () => left.push(params.name), { once: true });
          if (say === "boom") throw new Error("secret detail");
          await send({ said: `${params.name}: ${say}` });
        }
      },
    })),
  ],
  {
    clock,
    kept: keptAnswersIn(memoryEntries(() => 0)),
    report: (_endpoint, error) => reported.push(error),
    socketsMax: 2,
  },
);
const ann = principal({ name: "ann", tenant: "acme", roles: ["member"] }, "token");
const identify: Identify = ({ headers }) =>
  Promise.resolve(
    headers.get("authorization") === "Bearer good"
      ? { ok: true, caller: { principal: ann, address: "127.0.0.1", untilMs: Infinity, isTls: false } }
      : unauthenticated("credentials-missing"),
  );
const server = createServer().on("upgrade", (request, stream, head) => serve(request, stream, head, identify));
await once(server.listen(0, "127.0.0.1"), "listening");
const { port } = server.address() as AddressInfo;
after(() => void server.close());

const good = { authorization: "Bearer good" };
const connect = (path = "/v1/echo/x", headers: Record<string, string> = good) =>
  new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers });

/** The status of a refused upgrade. */
async function refusal(client: WebSocket): Promise<number | undefined> {
  const [, response] = (await once(client, "unexpected-response")) as [unknown, { statusCode?: number }];
  client.on("error", () => {}).terminate();
  return response.statusCode;
}

describe("a WebSocket", { timeout: 90_000 }, () => {
  test("carries checked JSON messages both ways", async () => {
    const client = connect();
    await once(client, "open");
    client.send('{"say":"a"}');
    client.send('{"say":"b"}');
    const seen: string[] = [];
    for await (const [data] of on(client)) if (seen.push(String(data)) === 2) break;
    deepEqual(seen, ['{"said":"x: a"}', '{"said":"x: b"}']);
    client.close();
    await once(client, "close");
  });

  const refused: readonly [string, number, string, Record<string, string>][] = [
    ["without credentials", 401, "/v1/echo/x", {}],
    ["from a page of another site", 403, "/v1/echo/x", { ...good, origin: "http://evil.example" }],
    ["at an address that has none", 404, "/v1/other", good],
    ["with a wrong path field", 400, "/v1/echo/toolong", good],
    ["in another tenant", 403, "/v1/echo/x?tenant=other", good],
  ];
  for (const [what, status, path, headers] of refused)
    test(`is refused ${what}`, async () => equal(await refusal(connect(path, headers)), status));

  for (const [what, message, code] of [
    ["no JSON", "nope", 1007],
    ["another form", '{"shout":1}', 1008],
    ["what breaks the handler", '{"say":"boom"}', 1011],
  ] as const)
    test(`ends when the peer sends ${what}`, async () => {
      const client = connect();
      await once(client, "open");
      client.send(message);
      const [closed, reason] = (await once(client, "close")) as [number, Buffer];
      equal(closed, code);
      equal(String(reason).includes("secret"), false);
    });

  test("the call's signal says that the peer has gone", async () => {
    const client = connect();
    await once(client, "open");
    client.send(JSON.stringify({ say: "wait" }));
    await once(client, "message");
    client.terminate();
    await until("the handler knows", () => left.length > 0);
  });

  test("beyond the limit is refused, and a peer that answers no ping makes room", async () => {
    const [first, second] = [connect(), connect()];
    await Promise.all([once(first, "open"), once(second, "open")]);
    equal(await refusal(connect()), 503);
    first.pong = () => {}; // ws answers pings by calling this
    second.close();
    await once(second, "close");
    const gone = once(first, "close");
    await clock.advance(30_000);
    await clock.advance(30_000);
    await gone;
    match(String(reported[0]), /secret detail/);
  });
});

async function* on(client: WebSocket): AsyncGenerator<readonly [unknown]> {
  const waiting: unknown[] = [];
  let wake = Promise.withResolvers<void>();
  client.on("message", (data) => {
    waiting.push(data);
    wake.resolve();
  });
  for (;;) {
    await wake.promise;
    wake = Promise.withResolvers();
    for (const data of waiting.splice(0)) yield [data];
  }
}
