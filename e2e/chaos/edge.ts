/**
 * A client from outside: it knows the addresses of some nodes, sends any request to one of them, and to another one if
 * that does not answer. Requests are repeated, so callers must use a request key for what must be done once.
 */
import { Deadline } from "#base/calls/abort.ts";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import { createClient, type WorkClient } from "#shard/client/client.ts";
import type { Directory } from "#shard/client/directory.ts";
import type { ShardRequest } from "#shard/transport/protocol.ts";
import { isWorthRetrying, nameOf, type AskOptions, type Router, type Settled } from "#shard/router/router.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import { sourceAt } from "#app/work/work-sources.ts";
import type { WorkSources } from "#worker/visits/sources.ts";

export type EdgePorts = {
  readonly clock: Clock;
  readonly random: Random;
  /** The addresses of nodes; read again for every try. */
  readonly addresses: () => readonly string[];
  /** For one try, besides the time that a `reserve` may be held. */
  readonly tryMs: number;
};

export type Edge = {
  readonly router: Router;
  /** The nodes as a worker asks them for work. */
  readonly sources: WorkSources;
  close(): Promise<void>;
};

export function createEdge({ clock, random, addresses, tryMs }: EdgePorts): Edge {
  const transport = createTcpTransport({ clock, via: "router" });

  async function ask(request: ShardRequest, { deadlineMs = 30_000, signal }: AskOptions): Promise<Settled> {
    const untilMs = clock.monotonicMs() + deadlineMs;
    const heldMs = request.kind === "command" ? (request.waitMs ?? 0) : 0;
    let last: unknown;
    for (let tries = 1; ; tries += 1) {
      signal?.throwIfAborted();
      const leftMs = untilMs - clock.monotonicMs();
      if (leftMs <= 0) throw new Fault("unknown-outcome", nameOf(request), { tries, last: String(last) }, last);
      const to = random.pick(addresses());
      const late = (): Fault => new Fault("unknown-outcome", nameOf(request), { to });
      using limited = new Deadline(clock, Math.min(leftMs, tryMs + heldMs), signal, late);
      try {
        return (await transport.request(to, request, limited.signal)) as Settled;
      } catch (error) {
        signal?.throwIfAborted();
        if (!isFault(error) || !isWorthRetrying(error)) throw error;
        last = error;
        await clock.sleep(Math.min(20 * tries, 200));
      }
    }
  }

  return {
    router: {
      request: (request, options = {}) => ask(request, options),
      watch: () => {
        throw new Fault("invalid", "watch", { why: "this caller only asks" });
      },
      seen: () => undefined,
    },
    sources: () => new Map(addresses().map((address) => [address, sourceAt(transport, address)])),
    close: () => transport.close(),
  };
}

/** The typed client over an Edge. It does not need the database. */
export function edgeClient(edge: Edge, shards: number, random: Random): WorkClient {
  const unknown = (): never => {
    throw new Fault("invalid", "look at the cluster", { why: "this caller only asks shards" });
  };
  const directory: Directory = {
    cluster: () => Promise.resolve({ clusterId: "chaos", shards, featureLevel: 1 }),
    nodes: unknown,
    ownerships: unknown,
    history: { job: unknown, jobs: unknown, count: unknown },
  };
  return createClient({ router: edge.router, directory, random });
}
