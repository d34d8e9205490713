import { deepEqual, equal, rejects, throws } from "node:assert/strict";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { GrpcServer } from "#grpc/server.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { listenH2 } from "#h2/server.ts";
import type { JobView } from "#kernel/read/query.ts";
import { realClock } from "#testing/real-clock.ts";
import { serveWork, type WorkServing } from "./grpc-serve.ts";
import { createGrpcTransport, parseGrpcAddress, type GrpcTransport } from "#shard/transport/grpc-transport.ts";
import type { ShardResponse, ShardService } from "./protocol.ts";
import { ask, exerciseTransport, never, service, stats } from "#shard/testing/exercise-transport.ts";
import type { Listening } from "./transport.ts";

const noMap = { cluster: { clusterId: "test", shards: 4 }, ownerships: [], nodes: [] };

async function listening(given: Partial<WorkServing<string>> & { readonly service: ShardService }): Promise<Listening> {
  const grpc = new GrpcServer<string>({
    clock: realClock,
    admit: (_path, headers) => headers.get("authorization") ?? "",
  });
  serveWork(grpc, { routed: service({}), map: async () => noMap, ...given });
  const h2 = await listenH2({
    host: "127.0.0.1",
    port: 0,
    clock: realClock,
    limits: { drainMs: 500 },
    onRequest: (stream, headers, ended) => grpc.open(stream, headers, ended),
  });
  return { address: `grpc:127.0.0.1:${h2.port}`, close: () => h2.close() };
}

const transports = (): { readonly server: GrpcTransport; readonly client: GrpcTransport } => ({
  server: createGrpcTransport({ clock: realClock, listen: (own) => listening({ service: own }) }),
  client: createGrpcTransport({ clock: realClock }),
});

exerciseTransport("the transport over gRPC", async () => ({ ...transports(), nowhere: "grpc:127.0.0.1:1" }));

test("a caller that knows only one node is answered through its router, and gets the map", async () => {
  const opened = await listening({
    service: service({ request: async () => stats(1) }),
    routed: service({ request: async () => stats(2) }),
  });
  const owner = createGrpcTransport({ clock: realClock });
  const anyone = createGrpcTransport({ clock: realClock, via: "router" });
  deepEqual(await owner.request(opened.address, ask(0), never), stats(1));
  deepEqual(await anyone.request(opened.address, ask(0), never), stats(2));
  deepEqual(await anyone.map(opened.address, never), noMap);
  await Promise.all([owner.close(), anyone.close()]);
  await opened.close();
});

test("a request that the caller may not make reaches no shard", async () => {
  let asked = 0;
  const opened = await listening({
    service: service({
      request: async () => {
        asked += 1;
        return stats(1);
      },
    }),
    narrow: {
      request(caller, request) {
        if (caller !== "friend") throw new GrpcError(grpcCode.permissionDenied, "not you");
        return request;
      },
      first: () => [],
      watch: (_caller, request) => request,
      map(caller) {
        if (caller !== "friend") throw new GrpcError(grpcCode.permissionDenied, "not you");
      },
    },
  });
  const stranger = createGrpcTransport({ clock: realClock });
  const friend = createGrpcTransport({ clock: realClock, metadata: [["authorization", "friend"]] });
  await rejects(stranger.request(opened.address, ask(0), never), (error) => isFault(error));
  await rejects(stranger.map(opened.address, never), (error) => error instanceof GrpcError || isFault(error));
  equal(asked, 0);
  deepEqual(await friend.request(opened.address, ask(0), never), stats(1));
  deepEqual(await friend.map(opened.address, never), noMap);
  await Promise.all([stranger.close(), friend.close()]);
  await opened.close();
});

test("lookups come before the request, and it reaches the shard only if they pass the check", async () => {
  const asked: string[] = [];
  const stamp = { epoch: 3, seq: 7 };
  const found: ShardResponse[] = [
    { kind: "not-owner", shard: 0, hint: undefined }, // the lookup fails
    { kind: "rejected", stamp, rejection: { kind: "job-unknown", job: 9 } }, // the request is refused as well
    { kind: "answer", stamp, answer: { door: "closed" } as JobView },
    { kind: "answer", stamp, answer: { door: "open" } as JobView },
  ];
  const opened = await listening({
    service: service({
      request: async (request) => {
        asked.push(request.kind === "query" ? request.query.kind : request.kind);
        return asked.at(-1) === "job" ? (found.shift() ?? stats(0)) : stats(1);
      },
    }),
    narrow: {
      request: (_caller, request) => request,
      first: (_caller, { shard }) => [
        {
          request: { kind: "query", shard, query: { kind: "job", job: 9 } },
          check(answer) {
            if ((answer as JobView).door !== "open") throw new GrpcError(grpcCode.permissionDenied, "closed");
          },
        },
      ],
      watch: (_caller, request) => request,
      map: () => {},
    },
  });
  const transport = createGrpcTransport({ clock: realClock });
  equal((await transport.request(opened.address, ask(0), never)).kind, "not-owner");
  deepEqual(await transport.request(opened.address, ask(0), never), stats(1));
  await rejects(transport.request(opened.address, ask(0), never), (error) => isFault(error));
  deepEqual(await transport.request(opened.address, ask(0), never), stats(1));
  deepEqual(asked, ["job", "job", "executors", "job", "job", "executors"]);
  await transport.close();
  await opened.close();
});

test('rejections and "not done" answers arrive unchanged', async () => {
  const opened = await listening({
    service: service({
      request: async ({ shard }) =>
        shard === 1
          ? { kind: "rejected", stamp: { epoch: 3, seq: 7 }, rejection: { kind: "task-unknown", task: 9 } }
          : shard === 2
            ? { kind: "not-owner", shard, hint: "grpc:127.0.0.1:99" }
            : { kind: "overloaded", retryAfterMs: 120 },
    }),
  });
  const client = createGrpcTransport({ clock: realClock });
  deepEqual(await client.request(opened.address, ask(1), never), {
    kind: "rejected",
    stamp: { epoch: 3, seq: 7 },
    rejection: { kind: "task-unknown", task: 9 },
  });
  deepEqual(await client.request(opened.address, ask(2), never), {
    kind: "not-owner",
    shard: 2,
    hint: "grpc:127.0.0.1:99",
  });
  deepEqual(await client.request(opened.address, ask(3), never), { kind: "overloaded", retryAfterMs: 120 });
  await client.close();
  await opened.close();
});

test("addresses", () => {
  deepEqual(parseGrpcAddress("grpc:[::1]:7433"), { host: "::1", port: 7433 });
  for (const wrong of ["tcp:127.0.0.1:1", "grpc:host", "grpc:host:99999", ""])
    throws(
      () => parseGrpcAddress(wrong),
      (error) => isFault(error, "invalid"),
    );
});
