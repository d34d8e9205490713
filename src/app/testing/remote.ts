/** For tests: a client of one node over the nodes' own protocol; the node passes each request on to the owner. */
import { randomUUID } from "node:crypto";
import { Random } from "#base/random.ts";
import type { NodeStatus } from "#shard/node-status.ts";
import { createClient, type WorkClient } from "#shard/client/client.ts";
import { createRouter } from "#shard/router/router.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import type { Address } from "#shard/transport/transport.ts";
import { systemClock } from "#door/system-clock.ts";
import { wireDirectory } from "#app/peers/wire-directory.ts";

type RemoteClient = AsyncDisposable & {
  readonly work: WorkClient;
  /** What the node reports about itself. */
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
