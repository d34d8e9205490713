/** Silent connections must not lock other nodes and tools out of a node. */
import { deepEqual } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type NetConnectOpts, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { realClock as clock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { parseAddress } from "./tcp-address.ts";
import { createTcpTransport, type TcpTransport } from "./tcp.ts";
import { ask, service, stats } from "#shard/testing/exercise-transport.ts";

const secret = "a secret that all nodes of the test know";
const limits = { connectionsMax: 8, greetingMax: 8, connectMs: 30_000 };
const hello = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  Buffer.from("000000040000000000", "hex"), // SETTINGS, with none in it
]);

async function listening(address: string, known?: string): Promise<{ node: TcpTransport; address: string }> {
  const node = createTcpTransport({ clock, listenOn: [address], limits, secret: known });
  const { address: bound } = await node.listen(service({ request: async ({ shard }) => stats(shard) }));
  return { node, address: bound };
}

function dial(address: string, says?: Uint8Array): Promise<Socket> {
  const endpoint = parseAddress(address);
  const to: NetConnectOpts = endpoint.kind === "unix" ? { path: endpoint.path } : endpoint;
  const socket = connect(to);
  socket.on("error", () => {});
  socket.resume();
  if (says) socket.write(says);
  return new Promise((there) => {
    socket.once("connect", () => there(socket));
    socket.once("close", () => there(socket));
  });
}

/** One request on a connection of its own, within a second. */
async function asks(address: string, known?: string): Promise<void> {
  const client = createTcpTransport({ clock, secret: known });
  try {
    deepEqual(await client.request(address, ask(1), AbortSignal.timeout(1_000)), stats(1));
  } finally {
    await client.close();
  }
}

describe("silent connections lock no caller out of a node", () => {
  const cases = [
    { name: "over TCP", secret: undefined, says: undefined },
    { name: "over TCP, each after its greeting", secret: undefined, says: hello },
    { name: "over TCP with a secret, which they do not know", secret, says: undefined },
    { name: "over a Unix socket", secret: undefined, says: undefined },
  ];
  for (const { name, secret: known, says } of cases)
    test(name, { timeout: 90_000 }, async () => {
      const folder = await mkdtemp(join(tmpdir(), "millrace-flood-"));
      const isUnix = name.includes("Unix");
      const { node, address } = await listening(isUnix ? `unix:${join(folder, "s")}` : "tcp:127.0.0.1:0", known);
      const sockets: Socket[] = [];
      try {
        for (let at = 0; at < 40; at += 1) sockets.push(await dial(address, says));
        for (let times = 0; times < 3; times += 1) await asks(address, known);
        await until("the oldest were closed", () => sockets.filter(({ closed }) => closed).length >= 24);
      } finally {
        for (const socket of sockets) socket.destroy();
        await node.close();
        await rm(folder, { recursive: true });
      }
    });
});
