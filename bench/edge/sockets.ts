/**
 * WebSockets over HTTP/1.1 and over HTTP/2 (RFC 8441): what a connection and a message cost the server, in CPU time
 * and bytes on the wire. The clients are another process.
 *
 *   node bin/node.js bench/edge/sockets.ts
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect as connectH2, type ClientHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { WebSocket } from "ws";
import { z } from "zod";
import { principal } from "#access/principal.ts";
import { memoryEntries } from "#base/memory-entries.ts";
import { serveConnect } from "#edge/port/socket-over-h2.ts";
import { listenH2 } from "#h2/server.ts";
import { endpoint, socket } from "#http/endpoint.ts";
import { keptAnswersIn } from "#http/kept-answers.ts";
import { serveSockets } from "#http/live/upgrade.ts";
import { route } from "#http/route.ts";
import type { Identify } from "#http/serve.ts";
import { realClock } from "#testing/real-clock.ts";

const connections = 200;
const messagesEach = 200;
const rounds = 3;
type Version = "HTTP/1.1" | "HTTP/2";

const echo = endpoint({
  method: "GET",
  path: "/v1/echo",
  action: "work.read",
  about: "Says it back.",
  answer: socket(z.object({ say: z.string() }), z.object({ say: z.string() })),
});

async function serve(): Promise<void> {
  const { upgrade, connect } = serveSockets(
    [
      route(echo, () => ({
        async body({ messages, send }) {
          for await (const message of messages) await send(message);
        },
      })),
    ],
    { clock: realClock, kept: keptAnswersIn(memoryEntries(() => 0)), report: console.error, socketsMax: 10_000 },
  );
  const ann = principal({ name: "ann", tenant: "acme", roles: ["member"] }, "token");
  const caller = { principal: ann, address: "127.0.0.1", untilMs: Infinity, isTls: false };
  const identify: Identify = () => Promise.resolve({ ok: true, caller });
  const http1 = createServer().on("upgrade", (request, stream, head) => upgrade(request, stream, head, identify));
  await once(http1.listen(0, "127.0.0.1"), "listening");
  const h2 = await listenH2({
    host: "127.0.0.1",
    port: 0,
    clock: realClock,
    takesProtocols: true,
    onRequest: (stream, headers, ended) =>
      serveConnect(stream, headers, ended, (request, wire) => connect(request, wire, identify)),
  });
  const ports: Record<Version, number> = { "HTTP/1.1": (http1.address() as AddressInfo).port, "HTTP/2": h2.port };
  const rows: Record<string, string | number>[] = [];
  for (let round = 0; round < rounds; round += 1)
    for (const version of ["HTTP/1.1", "HTTP/2"] as const) rows.push(await measure(version, ports[version]));
  console.table(rows);
  http1.closeAllConnections();
  http1.close();
  await h2.close();
}

async function measure(version: Version, port: number): Promise<Record<string, string | number>> {
  const client = fork(import.meta.filename, [version, String(port)]);
  const step = async (say: string): Promise<{ cpuUs: number; bytes: number; rss: number }> => {
    globalThis.gc?.();
    const before = process.cpuUsage();
    client.send(say);
    const [bytes] = (await once(client, "message")) as [number];
    const { user, system } = process.cpuUsage(before);
    return { cpuUs: user + system, bytes, rss: process.memoryUsage().rss };
  };
  await once(client, "message");
  const opened = await step("open");
  const talked = await step("talk");
  client.kill();
  await once(client, "exit");
  const messages = connections * messagesEach;
  return {
    version,
    "CPU us/connection": Math.round(opened.cpuUs / connections),
    "bytes/connection": Math.round(opened.bytes / connections),
    "CPU us/message": (talked.cpuUs / messages).toFixed(1),
    "bytes/message": (talked.bytes / messages).toFixed(1),
  };
}

/** The clients: each step's answer is how many bytes their connections have carried in both directions. */
async function talk(version: Version, port: number): Promise<void> {
  const sockets: WebSocket[] = [];
  const session = version === "HTTP/2" ? connectH2(`http://127.0.0.1:${port}`) : undefined;
  if (session) await once(session, "remoteSettings");
  const carried = (): number => {
    const wires = session ? [session.socket] : sockets.map((each) => (each as unknown as { _socket: Socket })._socket);
    return wires.reduce((sum, { bytesRead, bytesWritten }) => sum + bytesRead + bytesWritten, 0);
  };
  const open = async (): Promise<void> => {
    if (!session) {
      const client = new WebSocket(`ws://127.0.0.1:${port}/v1/echo`, { perMessageDeflate: false });
      await once(client, "open");
      sockets.push(client);
      return;
    }
    const headers = {
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":path": "/v1/echo",
      "sec-websocket-version": "13",
    };
    const stream: ClientHttp2Stream = session.request(headers, { endStream: false });
    await once(stream, "response");
    const client = new WebSocket(null as never, undefined, { autoPong: true, closeTimeout: 1_000 } as never);
    Object.assign(client, { _isServer: false });
    (client as unknown as { setSocket(...given: unknown[]): void }).setSocket(stream, Buffer.alloc(0), {});
    sockets.push(client);
  };
  const chat = async (client: WebSocket): Promise<void> => {
    for (let i = 0; i < messagesEach; i += 1) {
      client.send('{"say":"a message of about sixty bytes, as a status would be"}');
      await once(client, "message");
    }
  };
  process.on("message", (step) => {
    const before = carried();
    const work = step === "open" ? Array.from({ length: connections }, open) : sockets.map(chat);
    void Promise.all(work).then(() => process.send?.(carried() - before));
  });
  process.send?.("ready");
}

const [version, port] = process.argv.slice(2);
if (version === undefined) await serve();
else await talk(version as Version, Number(port));
