/** Pools of machines on a node: what they ask the cluster, and who keeps them. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import { allTenants } from "#access/principal.ts";
import type { FailReason } from "#kernel/model/model.ts";
import { grantedLabels } from "#pools/demand.ts";
import type { ProblemReason } from "#pools/machine.ts";
import { Pools } from "#pools/pools.ts";
import { standingsIn, type Standings } from "#pools/standing.ts";
import type { Records } from "#records/watch.ts";
import { shardOf, type WorkClient } from "#shard/client/client.ts";
import type { TcpTransport } from "#shard/transport/tcp.ts";
import type { Node } from "#shard/node.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { wholeQueue } from "#app/pools/queue-calls.ts";
import type { WorkerRegistry } from "#app/workers/registry.ts";
import type { Config } from "#app/config/config.ts";

export type PoolParts = {
  readonly config: Config;
  readonly name: string;
  readonly records: Records;
  readonly registry: WorkerRegistry;
  readonly clock: Clock;
  readonly random: Random;
  readonly node: Pick<Node, "host" | "keeper" | "address" | "cluster">;
  readonly client: Pick<WorkClient, "fail">;
  readonly tcp: Pick<TcpTransport, "call">;
  readonly log: (line: string) => void;
};

/** How the kernel names what became of a machine. */
const failReasons: Readonly<Record<ProblemReason, FailReason>> = {
  "out-of-memory": "out-of-memory",
  preempted: "preempted",
  evicted: "preempted",
  unschedulable: "executor-lost",
  "image-pull": "executor-lost",
  configuration: "executor-lost",
  deadline: "executor-lost",
  failed: "executor-lost",
};

export function startPools(parts: PoolParts): { readonly pools: Pools; readonly standings: Standings } {
  const { config, name, records, registry, clock, random, node, client, tcp, log } = parts;
  const standings = standingsIn(records);
  const pools = new Pools({
    pools: config.pools,
    node: name,
    standings,
    records,
    clock,
    random: random.fork("pools"),
    server: config.cluster.issuer,
    log,
    owns: (pool) => node.keeper.held.has(shardOf(`pool ${pool}`, node.cluster.shards)),
    queue: (signal) => wholeQueue(node, tcp, signal),
    async register(pool, template, worker) {
      const { record, token } = await registry.makeToken(pool.tenant ?? allTenants, `pool ${pool.name}`, {
        name: worker,
        pools: [pool.name],
        labels: [...grantedLabels(template)],
        isEphemeral: true,
        uses: 1,
        ttlMs: pool.startWithin,
      });
      return { id: record.name, token };
    },
    unregister: (pool, registration) => registry.end(pool.tenant ?? allTenants, registration),
    async lost(executor, { task, token }, { reason, message }) {
      try {
        await client.fail({ executor, taskId: task, token }, failReasons[reason], message);
      } catch (error) {
        if (!isRejected(error)) throw error; // it has ended by itself, or another attempt has begun
      }
    },
  });
  return { pools, standings };
}
