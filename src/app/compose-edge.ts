/** The port that serves everything: gRPC, HTTP/2 and HTTP/1.1. */
import type { Clock } from "#base/clock.ts";
import { startEdge, type Edge } from "#edge/edge.ts";
import { Log } from "#edge/log.ts";
import type { Action } from "#edge/policy.ts";
import type { Journal } from "#journal/journal.ts";
import { serveWork } from "#shard/grpc-serve.ts";
import type { Node } from "#shard/node.ts";
import type { ShardService } from "#shard/protocol.ts";
import { workCalls } from "#shard/work-calls.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import type { Config } from "./config.ts";
import { parseEdgeAddress } from "./edge-config.ts";
import { workPolicy } from "./work-policy.ts";

export type EdgeParts = {
  readonly clock: Clock;
  readonly node: Node;
  readonly routed: ShardService;
  readonly journal: Journal;
  readonly log: (line: string) => void;
};

/** Whoever calls must be known; what they may ask of which tenant is judged when the request has been read. */
const workActions = new Map<string, Action>(
  [...workCalls.map(({ method }) => method), Work.methods.watch, Work.methods.getPartitionMap].map(({ path }) => [
    path,
    "service.describe",
  ]),
);

export async function composeEdge({ edge }: Config, parts: EdgeParts): Promise<Edge | undefined> {
  if (edge.listen.length === 0) return undefined;
  const { clock, node, routed, journal, log } = parts;
  return await startEdge({
    clock,
    listen: edge.listen.map(parseEdgeAddress),
    identity: edge.identity,
    tls: edge.tls,
    isReady: () => node.status().state === "up",
    log: new Log((line) => log(line.trimEnd()), clock),
    services(server, admission) {
      serveWork(server, {
        service: node,
        routed,
        narrow: workPolicy(admission),
        async map() {
          const [ownerships, nodes] = await Promise.all([journal.ownerships(), journal.nodes()]);
          return { cluster: node.cluster, ownerships, nodes };
        },
      });
      return workActions;
    },
  });
}
