// WebSockets over HTTP/2, by Node's own client: the whole way from the socket to the handler.
import { deepEqual, equal } from "node:assert/strict";
import { once } from "node:events";
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { after, describe, test } from "node:test";
import { WebSocket } from "ws";
import { z } from "zod";
import { principal } from "#access/principal.ts";
import { unauthenticated } from "#access/refusal.ts";
import { memoryEntries } from "#base/memory-entries.ts";
import { endpoint, socket } from "#http/endpoint.ts";
import { keptAnswersIn } from "#http/kept-answers.ts";
import { serveSockets } from "#http/live/upgrade.ts";
import { route } from "#http/route.ts";
import type { Identify } from "#http/serve.ts";
import { listenH2 } from "#h2/server.ts";
import { realClock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { serveConnect } from "./socket-over-h2.ts";

const echo = endpoint({
  method: "GET",
  path: "/v1/echo",
  action: "work.read",
  about: "Says it back.",
  answer: socket(z.object({ say: z.string(), times: z.number().optional() }), z.object({ said: z.string() })),
});
let handlersOpen = 0;
const sent = { count: 0 };
const { connect: serve } = serveSockets(
  [
    route(echo, () => ({
      async body({ messages, send }) {
        handlersOpen += 1;
        try {
          for await (const { say, times = 1 } of messages)
            for (let i = 0; i < times; i += 1) {
              await send({ said: say });
              sent.count += 1;
            }
        } finally {
          handlersOpen -= 1;
        }
      },
    })),
  ],
  { clock: realClock, kept: keptAnswersIn(memoryEntries(() => 0)), report: () => {}, socketsMax: 2 },
);
const ann = principal({ name: "ann", tenant: "acme", roles: ["member"] }, "token");
const identify: Identify = ({ headers }) =>
  Promise.resolve(
    headers.get("authorization") === "Bearer good"
      ? { ok: true, caller: { principal: ann, address: "127.0.0.1", untilMs: Infinity, isTls: false } }
      : unauthenticated("credentials-missing"),
  );
const server = await listenH2({
  host: "127.0.0.1",
  port: 0,
  clock: realClock,
  takesProtocols: true,
  limits: { drainMs: 100 },
  onRequest: (stream, headers, ended) =>
    serveConnect(stream, headers, ended, (request, wire) => serve(request, wire, identify)),
});
const session: ClientHttp2Session = connect(`http://127.0.0.1:${server.port}`);
await once(session, "remoteSettings");
after(async () => {
  session.destroy();
  await server.close();
});

const good = { authorization: "Bearer good", "sec-websocket-version": "13" };
const open = (headers: Record<string, string> = good, path = "/v1/echo", protocol = "websocket"): ClientHttp2Stream =>
  session.request({ ":method": "CONNECT", ":protocol": protocol, ":path": path, ...headers }, { endStream: false });

async function statusOf(stream: ClientHttp2Stream): Promise<number> {
  const [headers] = (await once(stream, "response")) as [{ ":status"?: number }];
  return headers[":status"] ?? 0;
}

/** A client's WebSocket over a stream that was accepted: `ws` has no such client. */
async function talking(): Promise<{ client: WebSocket; stream: ClientHttp2Stream }> {
  const stream = open();
  equal(await statusOf(stream), 200);
  const client = new WebSocket(null as never, undefined, { autoPong: true, closeTimeout: 1_000 } as never);
  Object.assign(client, { _isServer: false });
  (client as unknown as { setSocket(...args: unknown[]): void }).setSocket(stream, Buffer.alloc(0), {});
  return { client, stream };
}

describe("a WebSocket over HTTP/2", { timeout: 90_000 }, () => {
  test("is offered in the settings", () => equal(session.remoteSettings.enableConnectProtocol, true));

  test("carries messages both ways, and its end ends the stream", async () => {
    const { client, stream } = await talking();
    const seen: string[] = [];
    client.on("message", (data: Buffer) => seen.push(data.toString()));
    client.send('{"say":"a"}');
    client.send('{"say":"b"}');
    await until("both came back", () => seen.length === 2);
    deepEqual(seen, ['{"said":"a"}', '{"said":"b"}']);
    client.close(1000);
    await once(stream, "close");
    equal(stream.rstCode, 0);
    await until("the handler has ended", () => handlersOpen === 0);
  });

  const refused: readonly [string, number, Record<string, string>, string?, string?][] = [
    ["without credentials", 401, { "sec-websocket-version": "13" }],
    ["from a page of another site", 403, { ...good, origin: "http://evil.example" }],
    ["from a page that the browser calls foreign", 403, { ...good, "sec-fetch-site": "cross-site" }],
    ["at an address that has none", 404, good, "/v1/other"],
    ["in another tenant", 403, good, "/v1/echo?tenant=other"],
    ["in another version", 400, { ...good, "sec-websocket-version": "8" }],
    ["for another protocol", 501, good, "/v1/echo", "connect-udp"],
  ];
  for (const [what, status, headers, path, protocol] of refused)
    test(`is refused ${what}`, async () => {
      const stream = open(headers, path, protocol);
      equal(await statusOf(stream), status);
      stream.close();
    });

  test("a reset of the stream ends the handler, and beyond the limit a WebSocket is refused", async () => {
    const [first, second] = [await talking(), await talking()];
    await until("both handlers run", () => handlersOpen === 2);
    equal(await statusOf(open()), 503);
    first.stream.close(8);
    await until("one handler has ended", () => handlersOpen === 1);
    const third = await talking();
    second.stream.close(8);
    third.stream.close(8);
    await until("all have ended", () => handlersOpen === 0);
  });

  test("a peer that reads nothing is not sent more than its window and the buffers hold", async () => {
    const { client, stream } = await talking();
    stream.pause();
    client.send(JSON.stringify({ say: "x".repeat(10_000), times: 10_000 }));
    let last = -1;
    await until("the handler waits", () => last === (last = sent.count) && sent.count > 0);
    equal(sent.count < 1_000, true, `${sent.count} of 10,000 messages were sent`);
    stream.close(8);
    await until("the handler has ended", () => handlersOpen === 0);
  });
});
