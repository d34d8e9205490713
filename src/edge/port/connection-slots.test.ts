/** Floods of connections, over real sockets. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get, type RequestOptions } from "node:http";
import { get as getSecurely } from "node:https";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { testAuthority } from "#edge/testing/certificate.ts";
import { startEdge, type Edge } from "#edge/edge.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";
import type { SlotLimits } from "./connection-slots.ts";
import { Tls } from "#edge/tls/tls-config.ts";

const secretOf = (name: string): string => `a-token-that-is-long-enough-to-be-taken-by-${name}`;
const token = (name: string, tenant: string, role: string) => ({
  name,
  tenant,
  roles: [role],
  sha256: tokenSha256(secretOf(name)),
});
const identity = {
  tokens: [token("ops", "*", "operator"), token("ada", "blue", "viewer"), token("bob", "red", "viewer")],
};

const opened: { readonly edges: Edge[]; readonly sockets: Socket[] } = { edges: [], sockets: [] };

async function edgeWith(slots: Partial<SlotLimits>, more: { readonly identity?: unknown; readonly tls?: Tls } = {}) {
  const edge = await startEdge({
    clock,
    listen: [{ host: "127.0.0.1", port: 0 }],
    identity: Identity.parse(more.identity ?? identity),
    tls: more.tls,
    services: () => new Map(),
    notReady: () => [],
    log: new Log(() => {}, clock),
    h2: { drainMs: 200 },
    slots,
  });
  opened.edges.push(edge);
  return { edge, port: edge.ports[0] ?? 0 };
}

afterEach(async () => {
  for (const socket of opened.sockets.splice(0)) socket.destroy();
  for (const edge of opened.edges.splice(0)) await edge.close();
});

type Client = { readonly socket: Socket; readonly isClosed: () => boolean };

/** Connects, sends this at once, and reads whatever comes. */
async function open(port: number, says?: string | Buffer, from = "127.0.0.1"): Promise<Client> {
  const socket = connect({ port, host: "127.0.0.1", localAddress: from });
  let closed = false;
  socket.on("error", () => {});
  socket.on("close", () => (closed = true));
  socket.resume();
  opened.sockets.push(socket);
  await new Promise<void>((there) => {
    socket.once("connect", there);
    socket.once("close", there);
  });
  if (says !== undefined) socket.write(says);
  return { socket, isClosed: () => closed };
}

const flood = (port: number, count: number, says?: string | Buffer, from?: string): Promise<Client[]> =>
  Promise.all(Array.from({ length: count }, () => open(port, says, from)));

const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const ping = Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
const h2Preface = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings]);

/** One request on a connection of its own, within seconds. */
function ask(port: number, path: string, more: RequestOptions & { readonly ca?: string } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const how = { port, host: "127.0.0.1", path, agent: false, signal: AbortSignal.timeout(5_000), ...more };
    const request = (more.ca === undefined ? get : getSecurely)(how, (response) => {
      let body = "";
      response.on("data", (part: Buffer) => (body += part.toString()));
      response.on("end", () => resolve(`${response.statusCode} ${body}`));
    });
    request.on("error", reject);
  });
}

const by = (name: string): RequestOptions => ({ headers: { authorization: `Bearer ${secretOf(name)}` } });

async function probeAndOperatorGetIn(port: number): Promise<string> {
  equal(await ask(port, "/livez"), "200 alive\n");
  const metrics = await ask(port, "/metrics", by("ops"));
  match(metrics, /^200 /);
  return metrics;
}

const sample = (metrics: string, series: string): number =>
  Number(
    metrics
      .split("\n")
      .find((line) => line.startsWith(`${series} `))
      ?.split(" ")[1],
  );

describe("a flood of connections locks no caller out", () => {
  const greetings = {
    "that say nothing": undefined,
    "that speak HTTP/2 and make no call": h2Preface,
    "that never end a request": "GET /livez HTTP/1.1\r\nx: ",
    "that call what needs no credentials": "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n",
    "that show a wrong token": "GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer nobody\r\n\r\n",
  } as const;
  for (const [which, says] of Object.entries(greetings))
    test(which, async () => {
      const { port } = await edgeWith({ max: 60, lobbyMin: 10, perAddressMax: 1_000 });
      const clients = await flood(port, 200, says);
      const metrics = await probeAndOperatorGetIn(port);
      await until("the oldest were closed", () => clients.filter(({ isClosed }) => isClosed()).length >= 140);
      ok(sample(metrics, 'millrace_edge_connections_closed_total{reason="full"}') >= 140, metrics);
      ok(sample(metrics, "millrace_edge_connections_open") <= 60);
    });

  test("while it goes on and replaces each connection as soon as it is closed", async () => {
    const { port } = await edgeWith({ max: 60, lobbyMin: 10, perAddressMax: 40 });
    let going = true;
    const again = async (): Promise<void> => {
      while (going) {
        const { socket } = await open(port, h2Preface);
        await new Promise((closed) => (socket.destroyed ? closed(0) : socket.once("close", closed)));
      }
    };
    const attackers = Array.from({ length: 80 }, again);
    for (let times = 0; times < 20; times += 1) await probeAndOperatorGetIn(port);
    going = false;
    for (const socket of opened.sockets) socket.destroy();
    await Promise.all(attackers);
  });

  test("from one address costs the other addresses no connection", async () => {
    const { port } = await edgeWith({ max: 60, lobbyMin: 10, perAddressMax: 20 });
    const quiet = await flood(port, 5, h2Preface, "127.0.0.3");
    const clients = await flood(port, 100, undefined, "127.0.0.2");
    await until("it keeps its share", () => clients.filter(({ isClosed }) => !isClosed()).length === 20);
    deepEqual(new Set(quiet.map(({ isClosed }) => isClosed())), new Set([false]));
    const metrics = await probeAndOperatorGetIn(port);
    equal(sample(metrics, 'millrace_edge_connections_closed_total{reason="address-full"}'), 80);
    equal(sample(metrics, 'millrace_edge_connections_by_state{state="silent"}'), 25);
  });

  test("never closes the connection of an accepted caller", async () => {
    const { port } = await edgeWith({ max: 60, lobbyMin: 10, perAddressMax: 1_000 });
    const request = `GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secretOf("ada")}\r\n\r\n`;
    const known = await flood(port, 20, request);
    await until(
      "all are known",
      async () =>
        sample(await ask(port, "/metrics", by("ops")), 'millrace_edge_connections_by_state{state="known"}') > 20,
    );
    await flood(port, 200);
    await probeAndOperatorGetIn(port);
    deepEqual(new Set(known.map(({ isClosed }) => isClosed())), new Set([false]));
  });
});

describe("a connection without a call lives for seconds", () => {
  /** Sends something more whenever it can; resolves when the node has closed the connection. */
  async function trickle({ socket, isClosed }: Client, more: string | Buffer): Promise<void> {
    await until(
      "it was closed",
      () => {
        if (socket.writable) socket.write(more);
        return isClosed();
      },
      { limitMs: 20_000, everyMs: 50 },
    );
  }

  test("whatever it sends in the meantime", async () => {
    const { port } = await edgeWith({ firstCallMs: 300 });
    await Promise.all([
      until("silence was closed", (await open(port)).isClosed, { limitMs: 20_000 }),
      trickle(await open(port, "GET /livez HTTP/1.1\r\nx: "), "x"),
      trickle(await open(port, "PRI * HTTP/2.0\r\n"), ""),
      trickle(await open(port, h2Preface), ping),
    ]);
    const metrics = await ask(port, "/metrics", by("ops"));
    equal(sample(metrics, 'millrace_edge_connections_closed_total{reason="no-call"}'), 4);
  });

  test("also when it never completes its TLS handshake", async () => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-places-"));
    after(() => rm(folder, { recursive: true, force: true }));
    const authority = testAuthority();
    const localhost = authority.issue({ cn: "one", dns: ["localhost"], ip: ["127.0.0.1"] });
    const [certificate, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    await writeFile(certificate, localhost.cert);
    await writeFile(key, localhost.key);
    const { port } = await edgeWith(
      { max: 60, lobbyMin: 10, firstCallMs: 1_000 },
      { tls: Tls.parse({ certificate, key }) },
    );
    const { port: patient, edge } = await edgeWith({ firstCallMs: 30_000 }, { tls: Tls.parse({ certificate, key }) });
    const leaving = await flood(patient, 5, Buffer.from([22, 3, 1]));
    const isHeld = (count: number) => (): boolean =>
      edge.metrics.text().includes(`millrace_edge_connections_by_state{state="silent"} ${count}\n`);
    await until("their handshakes have begun", isHeld(5));
    for (const { socket } of leaving) socket.destroy();
    await until("those that left hold no place", isHeld(0));
    const shaking = await open(port, Buffer.from([22, 3, 1]));
    const clients = await flood(port, 100);
    equal(await ask(port, "/livez", { ca: authority.cert }), "200 alive\n");
    match(await ask(port, "/metrics", { ca: authority.cert, ...by("ops") }), /^200 /);
    const closed = (): boolean => shaking.isClosed() && clients.every(({ isClosed }) => isClosed());
    await until("every handshake was closed", closed, { limitMs: 20_000 });
    match(
      await ask(port, "/metrics", { ca: authority.cert, ...by("ops") }),
      /connections_by_state\{state="silent"\} 0/,
    );
  });

  test("and the headers of a later call may not take longer, for any caller", async () => {
    const { port } = await edgeWith({ firstCallMs: 300 });
    const request = `GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secretOf("ada")}\r\n\r\n`;
    await trickle(await open(port, `${request}GET /livez HTTP/1.1\r\nx: `), "x");
  });

  test("and that of an unknown caller is closed when it is idle", async () => {
    const { port } = await edgeWith({ strangerIdleMs: 200 });
    const stranger = await open(port, "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    await until("it was closed", stranger.isClosed, { limitMs: 20_000 });
    match(await ask(port, "/metrics", by("ops")), /closed_total\{reason="idle"\} 1/);
  });
});

test("an accepted caller keeps its connection between calls, anonymous or known", async () => {
  const anonymous = { anonymous: { from: "loopback", tenant: "blue", roles: ["viewer"] }, ...identity };
  const { port } = await edgeWith({ firstCallMs: 100, strangerIdleMs: 100 }, { identity: anonymous });
  const h2 = await connectH2({ host: "127.0.0.1", port, clock });
  const client = new GrpcClient({ clock, authority: "x", connect: () => Promise.resolve(h2) });
  const passing = await open(port);
  equal((await client.unary(Health.methods.check, { service: "" })).status, 1);
  await until("a connection without a call was closed", passing.isClosed);
  const stranger = await open(port);
  await until("and another", stranger.isClosed);
  equal((await client.unary(Health.methods.check, { service: "" })).status, 1);
  equal(h2.connection.closed, false);
  client.close();
});

test("accepted callers share the slots: the one with the most loses one; operators may exceed the limit", async () => {
  const { port } = await edgeWith({ max: 20, lobbyMin: 5, perAddressMax: 1_000 });
  const request = (name: string): string =>
    `GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secretOf(name)}\r\n\r\n`;
  const opens = (clients: readonly Client[]): number => clients.filter(({ isClosed }) => !isClosed()).length;
  const blue = await flood(port, 30, request("ada"));
  await until("one tenant alone may have all but the lobby", () => opens(blue) === 15);
  const red = [await open(port, request("bob"))];
  await until("another tenant gets in for one of them", () => opens(blue) === 14);
  const ops = await flood(port, 3, request("ops"));
  await probeAndOperatorGetIn(port);
  equal(opens([...red, ...ops]), 4);
  equal(opens(blue), 14);
});

test("a closed port releases its connections", async () => {
  const { edge, port } = await edgeWith({});
  const client = await open(port, h2Preface);
  await edge.close();
  opened.edges.splice(0);
  await until("it is closed", client.isClosed);
  await rejects(ask(port, "/livez"));
});
