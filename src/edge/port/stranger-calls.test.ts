/** What unknown callers, or callers that are not identified yet, can make a node hold for them. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { connect } from "node:net";
import { afterEach, test } from "node:test";
import { GrpcClient } from "#grpc/client.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { connectH2 } from "#h2/client.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { startEdge, type Edge, type EdgeOptions } from "#edge/edge.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";

const secret = "a-token-that-is-long-enough-to-be-taken-0123456789";
const opened: Disposable[] = [];
let edge: Edge | undefined;

async function start(more: Partial<EdgeOptions> = {}): Promise<number> {
  edge = await startEdge({
    clock,
    listen: [{ host: "127.0.0.1", port: 0 }],
    identity: Identity.parse({
      tokens: [{ name: "ops", tenant: "*", roles: ["operator"], sha256: tokenSha256(secret) }],
    }),
    services: () => new Map(),
    notReady: () => [],
    log: new Log(() => {}, clock),
    h2: { drainMs: 200 },
    ...more,
  });
  return edge.ports[0] ?? 0;
}

afterEach(async () => {
  for (const each of opened.splice(0)) each[Symbol.dispose]();
  await edge?.close();
});

function clientOf(port: number, token?: string): GrpcClient {
  const client = new GrpcClient({
    clock,
    authority: "x",
    connect: () => connectH2({ host: "127.0.0.1", port, clock }),
    ...(token === undefined ? {} : { metadata: [["authorization", `Bearer ${token}`]] as const }),
  });
  opened.push({ [Symbol.dispose]: () => client.close() });
  return client;
}

test("a health check of a megabyte is refused before it is read", async () => {
  const stranger = clientOf(await start());
  await rejects(stranger.unary(Health.methods.check, { service: "x".repeat(1024 * 1024) }), {
    code: grpcCode.resourceExhausted,
  });
  equal((await stranger.unary(Health.methods.check, { service: "" })).status, 1);
});

test("an unknown caller has few concurrent calls; a known caller has as many as others", async () => {
  const port = await start();
  const opens = async (client: GrpcClient): Promise<readonly number[]> => {
    const watches = Array.from({ length: 60 }, async () => {
      const watch = client.serverStream(Health.methods.watch, { service: "" })[Symbol.asyncIterator]();
      try {
        return (await watch.next()).done ? -1 : 0;
      } catch (error) {
        return error instanceof GrpcError ? error.code : -1;
      }
    });
    return await Promise.all(watches);
  };
  const codes = await opens(clientOf(port));
  equal(codes.filter((code) => code === 0).length, 16);
  deepEqual(new Set(codes), new Set([0, grpcCode.resourceExhausted]));
  deepEqual(new Set(await opens(clientOf(port, secret))), new Set([0]));
});

test("an HTTP/1.1 client that does not read its answer is disconnected", async () => {
  let sent = 0;
  let hasEnded = false;
  async function* endless() {
    try {
      for (; sent < 1_000; sent += 1) yield Buffer.alloc(1024 * 1024);
    } finally {
      hasEnded = true;
    }
  }
  const port = await start({
    h2: { drainMs: 200, sendStallMs: 300 },
    http: () => ({
      serve: (request) =>
        Promise.resolve(
          request.url.endsWith("/slow")
            ? clock.sleep(1_000).then(() => new Response("late\n"))
            : new Response(ReadableStream.from(endless())),
        ),
    }),
  });
  const socket = connect(port, "127.0.0.1", () => socket.write("GET /large HTTP/1.1\r\nhost: x\r\n\r\n"));
  socket.on("error", () => {});
  socket.pause();
  opened.push({ [Symbol.dispose]: () => void socket.destroy() });
  await until("the answer was called off", () => hasEnded, { limitMs: 60_000 });
  ok(sent < 100, `it was sent ${sent} MiB that it did not read`);
  equal(
    await (await fetch(`http://127.0.0.1:${port}/slow`)).text(),
    "late\n",
    "one that takes its time to answer is not",
  );
});
