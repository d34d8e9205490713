/** A client that knows one node: whatever it asks, that node asks the owner. Survives the node's restart. */
import { randomUUID } from "node:crypto";
import { Random } from "#base/random.ts";
import { createClient, type WorkClient } from "#shard/client.ts";
import { createRouter } from "#shard/router.ts";
import { createTcpTransport } from "#shard/tcp.ts";
import type { Address } from "#shard/transport.ts";
import type { NodeStatus } from "#shard/node-status.ts";
import { systemClock } from "./system-clock.ts";
import { wireDirectory } from "./wire-directory.ts";

export type RemoteClient = AsyncDisposable & {
  readonly work: WorkClient;
  /** What the node at the other end says of itself. */
  status(): Promise<NodeStatus>;
};

export function connectTo(
  address: Address,
  { deadlineMs = 15_000, secret }: { readonly deadlineMs?: number; readonly secret?: string | undefined } = {},
): RemoteClient {
  const clock = systemClock;
  const random = new Random(randomUUID());
  const transport = createTcpTransport({ clock, via: "router", secret });
  const directory = wireDirectory(transport, address, { clock, random, deadlineMs });
  const router = createRouter({
    ownerships: async () => {
      const { shards } = await directory.cluster();
      return Array.from({ length: shards }, (_, shard) => ({
        shard,
        epoch: 0,
        owner: address,
        address,
        remainingMs: 1,
      }));
    },
    transport,
    clock,
    random,
    options: { deadlineMs },
  });
  return {
    work: createClient({ router, directory, random }),
    status: () => directory.status(),
    [Symbol.asyncDispose]: () => transport.close(),
  };
}
