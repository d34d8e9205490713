/** The client of `bench rpc`, in a process of its own: so many requests, so many of them at once, over one transport. */
import { systemClock } from "#app/node/system-clock.ts";
import { answering } from "#bench/load-process.ts";
import type { Command } from "#kernel/model/command.ts";
import { createGrpcTransport } from "#shard/transport/grpc-transport.ts";
import type { ShardRequest } from "#shard/transport/protocol.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import type { Transport } from "#shard/transport/transport.ts";
import { jobOf } from "./work.ts";

export const rpcShapes = ["submit", "commit", "renew", "100 commits"] as const;

export type RpcWork = {
  readonly kind: "work";
  readonly over: "tcp" | "grpc";
  readonly address: string;
  readonly shape: (typeof rpcShapes)[number];
  readonly count: number;
  readonly atOnce: number;
};

export type RpcDone = { readonly seconds: number };

const never = new AbortController().signal;
const digest = (i: number): string => `sha256:${(i % 1_000_000).toString(16).padStart(64, "0")}/4096`;

function commandOf(shape: RpcWork["shape"], i: number): Command {
  const claim = { executor: "executor-17", task: i, token: i } as const;
  if (shape === "submit") return jobOf(`job-${i}`, 1);
  if (shape === "renew") return { kind: "renew", executor: "executor-17", claims: [{ task: i, token: i }] } as Command;
  const result = { payload: "", digests: [digest(i), digest(i + 1), digest(i + 2)] };
  return { kind: "commit", ...claim, result, evidence: { digests: [], pinnedForMs: 0 } } as Command;
}

function requestOf(shape: RpcWork["shape"], i: number): ShardRequest {
  if (shape !== "100 commits") return { kind: "command", shard: i % 64, command: commandOf(shape, i) };
  return { kind: "commands", shard: 0, commands: Array.from({ length: 100 }, (_, j) => commandOf("commit", i + j)) };
}

const clock = systemClock;
const transports: Record<RpcWork["over"], Transport> = {
  tcp: createTcpTransport({ clock }),
  grpc: createGrpcTransport({ clock }),
};

async function perform({ over, address, shape, count, atOnce }: RpcWork): Promise<RpcDone> {
  const transport = transports[over];
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < count) {
      const response = await transport.request(address, requestOf(shape, (next += 1)), never);
      if (response.kind !== "reply" && response.kind !== "said") throw new Error(JSON.stringify(response));
    }
  };
  const startedMono = performance.now();
  await Promise.all(Array.from({ length: atOnce }, caller));
  return { seconds: (performance.now() - startedMono) / 1_000 };
}

answering(perform);
