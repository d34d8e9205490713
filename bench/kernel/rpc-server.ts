/** The server of `bench rpc`: a service that answers at once, behind both ways in, in a process of its own. */
import { systemClock } from "#app/node/system-clock.ts";
import { GrpcServer } from "#grpc/server.ts";
import { listenH2 } from "#h2/server.ts";
import type { Reply } from "#kernel/model/reply.ts";
import { serveWork } from "#shard/transport/grpc-serve.ts";
import type { ShardRequest, ShardResponse, ShardService } from "#shard/transport/protocol.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";

const stamp = { epoch: 7, seq: 123_456 };

function answer(request: ShardRequest): ShardResponse {
  if (request.kind === "commands")
    return {
      kind: "said",
      stamp,
      said: request.commands.map((command) => ({ kind: "reply", stamp, reply: replyTo(command) })),
    };
  if (request.kind !== "command") throw new Error(`bench rpc asks for no ${request.kind}`);
  return { kind: "reply", stamp, reply: replyTo(request.command) };
}

function replyTo({ kind }: { readonly kind: string }): Reply {
  if (kind === "submit") return { job: 123_456, created: true, merged: false };
  if (kind === "commit") return { committed: true, generation: 1 };
  return { held: [], lost: [] };
}

const service: ShardService = {
  request: (request) => Promise.resolve(answer(request)),
  watch: () => {
    throw new Error("bench rpc watches nothing");
  },
};

const clock = systemClock;
const tcp = await createTcpTransport({ clock, listenOn: ["tcp:127.0.0.1:0"] }).listen(service);
const grpc = new GrpcServer<string>({ clock, admit: () => "bench" });
serveWork(grpc, { service, routed: service, map: () => Promise.reject(new Error("bench rpc has no map")) });
const onRequest: Parameters<typeof listenH2>[0]["onRequest"] = (stream, headers, ended) =>
  grpc.open(stream, headers, ended);
const h2 = await listenH2({ host: "127.0.0.1", port: 0, clock, onRequest });

process.on("disconnect", () => process.exit(0));
process.send?.({ tcp: tcp.address, grpc: `grpc:127.0.0.1:${h2.port}` });
