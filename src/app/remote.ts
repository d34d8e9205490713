/** A client that knows one node: whatever it asks, that node asks the owner. Survives the node's restart. */
import { randomUUID } from "node:crypto";
import { Random } from "#base/random.ts";
import type { RemoteClient } from "#door/command.ts";
import { createClient } from "#shard/client/client.ts";
import { createRouter } from "#shard/router/router.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import type { Address } from "#shard/transport/transport.ts";
import { systemClock } from "./node/system-clock.ts";
import { wireDirectory } from "./peers/wire-directory.ts";

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
