/** Until the caller is authenticated, no more is held for it than the first windows. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import { connectH2 } from "#h2/client.ts";
import { listenH2 } from "#h2/server.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { ServerReflection } from "#wire/generated/grpc/reflection/v1/reflection.ts";
import { GrpcClient } from "./client.ts";
import { GrpcServer } from "./server.ts";
import { grpcCode, GrpcError } from "./status.ts";

async function rig(body: (world: World) => Promise<void>): Promise<void> {
  const who = Promise.withResolvers<string>();
  const asked: string[] = [];
  const server = new GrpcServer<string>({ clock, admit: () => who.promise });
  server.add(Health, {
    check: ({ service }) => {
      asked.push(service);
      return { status: service.length };
    },
  });
  server.add(ServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const { host } of requests) yield { validHost: host, originalRequest: undefined };
    },
  });
  let receivedBytes = 0;
  const listening = await listenH2({
    host: "127.0.0.1",
    port: 0,
    clock,
    onRequest: (stream, headers, ended) => {
      const handler = server.open(stream, headers, ended);
      return {
        ...handler,
        onData: (of, bytes, last) => {
          receivedBytes += bytes.length;
          handler.onData(of, bytes, last);
        },
        onTrailers: (of, trailers) => handler.onTrailers?.(of, trailers),
        onWritable: (of) => handler.onWritable?.(of),
        onReset: (of, code) => handler.onReset(of, code),
      };
    },
  });
  const connect = () => connectH2({ host: "127.0.0.1", port: listening.port, clock });
  const client = new GrpcClient({ clock, authority: "x", connect });
  try {
    await body({ client, who, asked, receivedBytes: () => receivedBytes });
  } finally {
    client.close();
    await listening.close();
  }
}

type World = {
  readonly client: GrpcClient;
  readonly who: PromiseWithResolvers<string>;
  readonly asked: readonly string[];
  readonly receivedBytes: () => number;
};

const large = "x".repeat(3 * 1024 * 1024);

test("a large request waits at the caller, and is complete once the caller is admitted", () =>
  rig(async ({ client, who, asked, receivedBytes }) => {
    const calls = ["a", "b", "c"].map((end) => client.unary(Health.methods.check, { service: large + end }));
    const small = client.unary(Health.methods.check, { service: "small" });
    await until("the first windows are full", () => receivedBytes() >= 3 * 256 * 1024);
    for (let times = 0; times < 20; times += 1) await new Promise((turn) => setImmediate(turn));
    ok(receivedBytes() <= 1024 * 1024, `${receivedBytes()} bytes are held for callers that are not known`);
    equal(asked.length, 0);
    who.resolve("ada");
    for (const { status } of await Promise.all(calls)) equal(status, large.length + 1);
    equal((await small).status, 5);
    deepEqual(new Set(asked.map((service) => service.at(-1))), new Set(["a", "b", "c", "l"]));
  }));

test("a stream of requests arrives in order once the caller is admitted", () =>
  rig(async ({ client, who }) => {
    async function* hosts() {
      for (const host of ["one", "two", large, "four"]) yield { host };
    }
    const heard: number[] = [];
    const calls = (async () => {
      for await (const { validHost } of client.duplex(ServerReflection.methods.serverReflectionInfo, hosts()))
        heard.push(validHost.length);
    })();
    await new Promise((turn) => setImmediate(turn));
    who.resolve("ada");
    await calls;
    deepEqual(heard, [3, 3, large.length, 4]);
  }));

test("a refused caller gets the refusal, however much it was sending", () =>
  rig(async ({ client, who, asked, receivedBytes }) => {
    const call = client.unary(Health.methods.check, { service: large });
    await until("some of it is there", () => receivedBytes() > 100_000);
    who.reject(new GrpcError(grpcCode.unauthenticated, "who are you?"));
    await rejects(call, { code: grpcCode.unauthenticated });
    equal(asked.length, 0);
  }));
