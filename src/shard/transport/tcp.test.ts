import { deepEqual, equal, ok, rejects, throws } from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { formatAddress, isLoopback, parseAddress } from "./tcp-address.ts";
import { createTcpTransport, type TcpLimits } from "./tcp.ts";
import { ask, collect, exerciseTransport, never, service, stats } from "#shard/testing/exercise-transport.ts";
import { submit } from "#shard/testing/host.ts";

const loopback = "tcp:127.0.0.1:0";

function transports(limits: Partial<TcpLimits> = {}, clock = new ManualClock()) {
  const server = createTcpTransport({ clock, listenOn: [loopback], limits });
  const client = createTcpTransport({ clock, limits });
  return {
    server,
    client,
    clock,
    [Symbol.asyncDispose]: async () => void (await Promise.all([client.close(), server.close()])),
  };
}

exerciseTransport("the transport over TCP", async () => ({ ...transports(), nowhere: "tcp:127.0.0.1:1" }));

exerciseTransport("the transport over a Unix socket", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-tcp-"));
  const clock = new ManualClock();
  return {
    server: createTcpTransport({ clock, listenOn: [`unix:${join(folder, "node.sock")}`] }),
    client: createTcpTransport({ clock }),
    nowhere: `unix:${join(folder, "nobody.sock")}`,
    dispose: () => rm(folder, { recursive: true }),
  };
});

test("the router's methods reach the routed service with the same messages, and other calls have names", async () => {
  await using pair = transports();
  const viaRouter = createTcpTransport({ clock: pair.clock, via: "router" });
  const { address } = await pair.server.listen(service({ request: async () => stats(1) }), {
    routed: service({ request: async () => stats(2) }),
    calls: { double: async (body) => Number(body) * 2 },
  });
  deepEqual(await pair.client.request(address, ask(0), never), stats(1));
  deepEqual(await viaRouter.request(address, ask(0), never), stats(2));
  equal(await viaRouter.call(address, "double", 21, never), 42);
  await rejects(viaRouter.call(address, "triple", 21, never), (e) => isFault(e, "not-found"));
  await viaRouter.close();
});

test("a connection lost after sending leaves the outcome unknown; the next request connects again", async () => {
  await using pair = transports();
  const arrived = Promise.withResolvers<void>();
  const first = await pair.server.listen(
    service({
      request: () => {
        arrived.resolve();
        return new Promise(() => {});
      },
    }),
  );
  const asked = rejects(pair.client.request(first.address, ask(1), never), (e) => isFault(e, "unknown-outcome"));
  await arrived.promise;
  await first.close();
  await asked;
  const port = (parseAddress(first.address) as { port: number }).port;
  const reborn = createTcpTransport({ clock: pair.clock, listenOn: [`tcp:127.0.0.1:${port}`] });
  await reborn.listen(service({ request: async () => stats(3) }));
  deepEqual(await pair.client.request(first.address, ask(1), never), stats(3));
  await reborn.close();
});

test("a reader that does not read stops the writer, and loses nothing", async () => {
  await using pair = transports();
  const count = 1_000;
  const large = "x".repeat(10_000);
  let made = 0;
  const { address } = await pair.server.listen(
    service({
      request: async () => stats(1),
      async *watch() {
        while (made < count) {
          made += 1;
          yield { kind: "moved", hint: `${made} ${large}` };
        }
      },
    }),
  );
  const watching = pair.client.watch(address, { shard: 0, job: 1 }, never)[Symbol.asyncIterator]();
  await watching.next();
  for (let i = 0; i < 20; i += 1) await pair.client.request(address, ask(0), never); // whatever was to come has come
  ok(made < count / 2, `made ${made} of ${count} messages of 10 kB that nobody read`);
  const rest = await collect({ [Symbol.asyncIterator]: () => watching });
  equal(rest.length, count - 1);
});

/** What every HTTP/2 server says first: SETTINGS, with none in it. */
const greeting = Buffer.from("000000040000000000", "hex");

test("a peer that falls silent is given up after two heartbeats", async () => {
  const clock = new ManualClock();
  const silent = createServer((socket: Socket) => void socket.write(greeting));
  await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done));
  const sockets: Socket[] = [];
  const called = new Promise<void>((done) =>
    silent.on("connection", (socket: Socket) => {
      sockets.push(socket);
      // Its own greeting has 24 bytes and a few settings; the rest is the request.
      socket.on("data", () => socket.bytesRead > 150 && done());
    }),
  );
  const client = createTcpTransport({ clock, limits: { pingMs: 1_000 } });
  const address = formatAddress({ kind: "tcp", host: "127.0.0.1", port: (silent.address() as AddressInfo).port });
  const asked = rejects(client.request(address, ask(1), never), (e) => isFault(e, "unknown-outcome"));
  await called;
  await clock.advance(4_000);
  await asked;
  await client.close();
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test("a peer without a hello is given up after the connect timeout", async () => {
  const clock = new ManualClock();
  const sockets: Socket[] = [];
  const mute = createServer();
  const accepted = new Promise<void>((done) =>
    mute.on("connection", (socket: Socket) => {
      sockets.push(socket);
      done();
    }),
  );
  await new Promise<void>((done) => mute.listen(0, "127.0.0.1", done));
  const client = createTcpTransport({ clock, limits: { connectMs: 2_000 } });
  const asked = rejects(client.request(`tcp:127.0.0.1:${(mute.address() as AddressInfo).port}`, ask(1), never), (e) =>
    isFault(e, "unavailable"),
  );
  await accepted;
  await clock.advance(3_000);
  await asked;
  for (const socket of sockets) socket.destroy();
  mute.close();
});

describe("a client that does not speak the protocol is refused, and others go on", () => {
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  for (const [what, bytes] of [
    ["an HTTP/1.1 request", Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n")],
    ["a frame before the greeting", greeting],
    ["a frame that claims a megabyte", Buffer.concat([preface, Buffer.from("0f4240000000000001", "hex")])],
    ["a header block that is none", Buffer.concat([preface, greeting, Buffer.from("00000101040000000180", "hex")])],
  ] as const)
    test(what, { timeout: 90_000 }, async () => {
      await using pair = transports();
      const { address } = await pair.server.listen(service({ request: async () => stats(1) }));
      await speak((parseAddress(address) as { port: number }).port, bytes);
      deepEqual(await pair.client.request(address, ask(1), never), stats(1));
    });
});

test("connections, calls and messages beyond the limits are refused or wait, and others go on", async () => {
  await using pair = transports({ connectionsMax: 1, servedMax: 1, messageBytesMax: 2_000 });
  const arrived = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const { address } = await pair.server.listen(
    service({
      request: async (request) => {
        arrived.resolve();
        await answer.promise;
        return stats(request.shard);
      },
    }),
  );
  const first = pair.client.request(address, ask(1), never);
  await arrived.promise;
  const second = pair.client.request(address, ask(2), never);
  const another = createTcpTransport({ clock: pair.clock });
  await rejects(another.request(address, ask(3), never), (e) => isFault(e, "unavailable"));
  answer.resolve();
  deepEqual([await first, await second], [stats(1), stats(2)]);
  const command = submit({ spec: "x".repeat(3_000) });
  const large = pair.client.request(address, { kind: "command", shard: 4, command }, never);
  await rejects(large, (e) => isFault(e, "exhausted"));
  deepEqual(await pair.client.request(address, ask(5), never), stats(5));
  await another.close();
});

test("a socket file left by a crash is replaced; one in use is not", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-tcp-"));
  const path = join(folder, "node.sock");
  const make = () => createTcpTransport({ clock: new ManualClock(), listenOn: [`unix:${path}`] });
  try {
    // A plain file at the path has no listener, just like a dead node's socket.
    await writeFile(path, "");
    const living = make();
    await living.listen(service({}));
    equal((await stat(path)).mode & 0o777, 0o600);
    await rejects(make().listen(service({})), /another process listens there/);
    await living.close();
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("addresses are parsed strictly, and without a secret only this machine is listened on", async () => {
  for (const address of ["unix:/run/m.sock", "tcp:127.0.0.1:7433", "tcp:[::1]:7433", "tcp:localhost:1"]) {
    equal(formatAddress(parseAddress(address)), address);
    ok(isLoopback(parseAddress(address)));
  }
  for (const wrong of ["", "127.0.0.1:7433", "tcp:host", "tcp:host:99999", "unix:", `unix:/${"x".repeat(120)}`])
    throws(
      () => parseAddress(wrong),
      (e) => isFault(e, "invalid"),
      wrong,
    );
  const open = createTcpTransport({ clock: new ManualClock(), listenOn: ["tcp:0.0.0.0:0"] });
  await rejects(open.listen(service({})), /without authentication/);
});

/** Sends raw bytes; resolves when the other side has closed. */
function speak(port: number, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => void socket.write(bytes));
    socket.resume();
    socket.on("error", () => {}); // "close" follows
    socket.on("close", () => resolve());
  });
}

const secret = "of the whole mill, nobody else's";

exerciseTransport("the transport over TCP with a secret", async () => {
  const clock = new ManualClock();
  return {
    server: createTcpTransport({ clock, listenOn: [loopback], secret }),
    client: createTcpTransport({ clock, secret }),
    nowhere: "tcp:127.0.0.1:1",
  };
});

test("a peer without the secret, or with a wrong one, is not served", async () => {
  const clock = new ManualClock();
  const asked: unknown[] = [];
  const server = createTcpTransport({ clock, listenOn: [loopback], secret });
  const others = [
    createTcpTransport({ clock, secret: "of another mill altogether" }),
    createTcpTransport({ clock, limits: { connectMs: 200 } }),
  ];
  try {
    const { address } = await server.listen(
      service({
        request: async (request) => {
          asked.push(request);
          return stats(1);
        },
      }),
    );
    for (const other of others) await rejects(other.request(address, ask(0), never), (e) => isFault(e, "unavailable"));
    deepEqual(asked, []);
  } finally {
    await Promise.all([server, ...others].map((each) => each.close()));
  }
});

test("with a secret it may listen for other machines, and advertises the configured address", async () => {
  const clock = new ManualClock();
  const advertise = "tcp:mill.example:7433";
  const server = createTcpTransport({ clock, listenOn: ["tcp:0.0.0.0:0"], secret, advertise });
  const open = createTcpTransport({ clock, listenOn: ["tcp:0.0.0.0:0"] });
  try {
    equal((await server.listen(service({}))).address, advertise);
    await rejects(open.listen(service({})), (e) => isFault(e, "invalid"));
  } finally {
    await Promise.all([server.close(), open.close()]);
  }
});
