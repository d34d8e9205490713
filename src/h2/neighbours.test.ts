// Attacks over real sockets, and what others on the same server notice of them: nothing.
import { equal, ok } from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { connectH2 } from "./client.ts";
import { clientPreface, flag, frameType } from "./frame.ts";
import { PulledStream } from "./pulled-stream.ts";
import { data, frame, ping, priority, request, Rig, rst, settings, settingsAck, windowUpdate } from "./rig.ts";
import { echoServer, heldBytes, realClock, type EchoServer } from "./testing.ts";

const host = "127.0.0.1";
const hello = Buffer.concat([clientPreface, settings(), settingsAck]);

/** What is sent again and again; `turn` counts from 0. */
type Attack = (rig: Rig, turn: number) => Buffer;
const id = (turn: number): number => turn * 2 + 1;

const attacks: Readonly<Record<string, Attack>> = {
  "rapid reset": (rig, turn) => Buffer.concat([rig.headers(id(turn)), rst(id(turn))]),
  "malformed requests": (rig, turn) => rig.headers(id(turn), [["x", "1"]]),
  "SETTINGS flood": () => settings([[4, 1]]),
  "PING flood": () => ping(),
  "PRIORITY flood": () => priority(99),
  "empty DATA": (rig, turn) => (turn === 0 ? rig.headers(1) : data(1, "")),
  "CONTINUATION flood": (rig, turn) =>
    turn === 0 ? rig.headers(1, request, 0) : frame(frameType.continuation, 0, 1, Buffer.alloc(1_000, 0x82)),
  "window updates by one": () => windowUpdate(0, 1),
  "header bombs": (rig, turn) => {
    const bomb = Buffer.concat([
      Buffer.from("4001617fa11e", "hex"),
      Buffer.alloc(4_000, "x"),
      Buffer.alloc(8_000, 0xbe),
    ]);
    return frame(frameType.headers, flag.endHeaders, id(turn), bomb);
  },
};

/** Goes on until the server hangs up. */
async function attack(port: number, next: Attack): Promise<void> {
  const socket: Socket = connect(port, host);
  socket.on("error", () => {});
  socket.resume();
  socket.write(hello);
  const rig = new Rig();
  for (let turn = 0; !socket.closed && turn < 1_000_000; turn += 100) {
    const frames = Array.from({ length: 100 }, (_, at) => next(rig, turn + at));
    if (socket.writable && !socket.write(Buffer.concat(frames)))
      await Promise.race([once(socket, "drain"), once(socket, "close")]);
    else await new Promise((soon) => setImmediate(soon));
  }
  ok(socket.closed, "the attacker was sent away");
}

describe("while one connection attacks", { timeout: 60_000 }, () => {
  let server: EchoServer;
  before(async () => {
    server = await echoServer();
  });
  after(async () => await server.close());

  for (const [name, next] of Object.entries(attacks))
    test(`${name}: the attacker is sent away, and a neighbour's calls are answered`, async () => {
      const client = await connectH2({ host, port: server.port, clock: realClock });
      const body = Buffer.alloc(1_000, "innocent");
      let attacking = true;
      const attacked = attack(server.port, next).finally(() => (attacking = false));
      let calls = 0;
      while (attacking || calls < 50) {
        const call = new PulledStream(client.request(request, { onData() {}, onReset() {} }));
        await call.write(body, { end: true });
        const got: Buffer[] = [];
        for await (const chunk of call) got.push(chunk);
        ok(Buffer.concat(got).equals(body));
        calls += 1;
      }
      await attacked;
      client.close();
      await client.closed;
    });

  test("a hundred attackers that never read leave nothing behind", async () => {
    const before = heldBytes();
    const sockets = Array.from({ length: 100 }, () => {
      const rig = new Rig();
      const socket = connect(server.port, host);
      socket.on("error", () => {});
      socket.pause();
      const requests = Array.from({ length: 200 }, (_, at) => rig.headers(id(at)));
      socket.write(Buffer.concat([hello, ...requests, data(1, Buffer.alloc(10_000)), ping()]));
      return socket;
    });
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    for (const socket of sockets) socket.destroy();
    while (server.connections.size > 0) await new Promise((soon) => setImmediate(soon));
    const grown = heldBytes() - before;
    ok(grown < 8_000_000, `${grown} bytes more`);
    equal(server.connections.size, 0);
  });
});
