// Attacks over real sockets do not affect other connections of the same server.
import { equal, ok } from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { attackOnce, attacks, type Attack } from "#h2/testing/attacks.ts";
import { connectH2 } from "./client.ts";
import { clientPreface } from "./frames/frame.ts";
import { PulledStream } from "./connection/pulled-stream.ts";
import { data, ping, request, Rig, settings, settingsAck } from "./testing/rig.ts";
import { echoServer, heldBytes, type EchoServer } from "./testing/peer.ts";
import { realClock } from "#testing/real-clock.ts";

const host = "127.0.0.1";
const hello = Buffer.concat([clientPreface, settings(), settingsAck]);
const id = (turn: number): number => turn * 2 + 1;

async function attack(port: number, next: Attack): Promise<void> {
  ok((await attackOnce(host, port, next)).sentAway, "the attacker was sent away");
}

describe("while one connection attacks", { timeout: 60_000 }, () => {
  let server: EchoServer;
  before(async () => {
    server = await echoServer(realClock);
  });
  after(async () => await server.close());

  for (const [name, next] of Object.entries(attacks))
    test(`${name}: the attacker is disconnected, and another connection's calls are answered`, async () => {
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
