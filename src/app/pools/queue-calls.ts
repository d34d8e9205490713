/** What the queues of all nodes say to pools. Each node answers for the shards that it serves. */
import { z } from "zod";
import { formatTask } from "#base/ids.ts";
import { slotsOf } from "#kernel/apply/moves.ts";
import type { Tenant } from "#kernel/model/entities.ts";
import type { State } from "#kernel/model/state.ts";
import type { ReadyClass, TenantQueue } from "#kernel/ready/ready-queue.ts";
import { joined, workerPrefix, type PoolWorker, type Queue, type Waiting } from "#pools/queue.ts";
import type { TcpTransport } from "#shard/transport/tcp.ts";
import type { Node } from "#shard/node.ts";

const method = "pools.queue";
const rowsMax = 10_000;
const tasksMax = 100;
const askMs = 5_000;

const Text = z.string().max(1_000);
const Answer = z.object({
  waiting: z
    .array(
      z.object({
        tenant: Text,
        requires: z.array(Text).max(500),
        count: z.int().min(0),
        oldestForMs: z.number(),
        tasks: z.array(Text).max(tasksMax),
      }),
    )
    .max(rowsMax),
  workers: z
    .array(
      z.object({
        name: Text,
        holds: z.array(z.object({ task: Text, token: z.number(), tenant: Text })).max(1_000),
      }),
    )
    .max(rowsMax),
});

type ServedShard = { readonly shard: number; readonly phase: string; readonly state: State };

/** The queues of this node's shards. */
export function queueOf(shards: Iterable<ServedShard>): Queue {
  const waiting: Waiting[] = [];
  const workers: PoolWorker[] = [];
  for (const { phase, state, shard } of shards) {
    if (phase !== "serving") continue;
    for (const tenant of state.tenants.values()) {
      if (tenant.ready === 0 || waiting.length >= rowsMax) continue;
      let room = slotsOf(state, tenant) - tenant.running; // what is beyond the quota needs no machine
      for (const [of, queue] of tenant.queues) {
        if (of.planning || room <= 0) continue;
        const count = Math.min(queue.size, room);
        room -= count;
        if (count > 0) waiting.push(rowOf(queue, { of, tenant, count, shard, nowMs: state.nowMs }));
      }
    }
    for (const { id, claims } of state.executors.values()) {
      if (!id.startsWith(workerPrefix) || workers.length >= rowsMax) continue;
      const live = [...claims.values()].filter((claim) => !claim.void);
      const holds = live.map(({ task, token }) => ({
        task: formatTask(shard, task.no),
        token,
        tenant: task.stage.job.tenant.name,
      }));
      workers.push({ name: id, holds });
    }
  }
  return joined([{ waiting, workers }]);
}

type RowFacts = {
  readonly of: ReadyClass;
  readonly tenant: Tenant;
  readonly count: number;
  readonly shard: number;
  readonly nowMs: number;
};

function rowOf({ lists }: TenantQueue, { of, tenant, count, shard, nowMs }: RowFacts): Waiting {
  const tasks: string[] = [];
  let oldestForMs = 0;
  for (const { head } of lists) {
    if (head) oldestForMs = Math.max(oldestForMs, nowMs - head.queuedAtMs);
    for (let task = head; task && tasks.length < Math.min(count, tasksMax); task = task.next)
      tasks.push(formatTask(shard, task.no));
  }
  return { tenant: tenant.name, requires: of.requires, count, oldestForMs, tasks };
}

export const queueCalls = (node: () => Pick<Node, "host">) => ({
  [method]: async (): Promise<Queue> => queueOf(node().host.shards.values()),
});

/** Undefined: a node that is alive did not answer, so what waits is not known. */
export async function wholeQueue(
  node: Pick<Node, "host" | "keeper" | "address">,
  tcp: Pick<TcpTransport, "call">,
  signal: AbortSignal,
): Promise<Queue | undefined> {
  const others = node.keeper.nodes.filter(({ alive, address }) => alive && address !== "" && address !== node.address);
  const asked = AbortSignal.any([signal, AbortSignal.timeout(askMs)]);
  const parts = await Promise.all(
    others.map(async ({ address }) => {
      try {
        return Answer.parse(await tcp.call(address, method, {}, asked));
      } catch {
        return undefined;
      }
    }),
  );
  const known = parts.filter((part) => part !== undefined);
  if (known.length < parts.length) return undefined;
  return joined([queueOf(node.host.shards.values()), ...known]);
}
