/** Facts about the cluster that need no shard, over the wire: a node serves them, tools call them. */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { Cluster, EndedCount, History, JobFilter, JobHistory, NodeSeen, Ownership } from "#journal/journal.ts";
import type { Directory } from "#shard/client/directory.ts";
import type { NodeStatus } from "#shard/node-status.ts";
import { Backoff } from "#shard/router/backoff.ts";
import { isWorthRetrying } from "#shard/router/router.ts";
import type { TcpTransport } from "#shard/transport/tcp.ts";
import type { Address } from "#shard/transport/transport.ts";

type Calls = Readonly<Record<string, (body: unknown) => Promise<unknown>>>;
type JobsQuery = Parameters<History["jobs"]>[0];

export function directoryCalls(directory: Directory, status: () => NodeStatus): Calls {
  return {
    cluster: () => directory.cluster(),
    nodes: () => directory.nodes(),
    ownerships: () => directory.ownerships(),
    status: async () => status(),
    "history.job": async (body) => {
      const { shard, job } = body as { shard: number; job: number };
      return (await directory.history.job(Number(shard), Number(job))) ?? null;
    },
    "history.jobs": (body) => directory.history.jobs(body as JobsQuery),
    "history.count": (body) => directory.history.count(body as JobFilter),
  };
}

export type WireDirectory = Directory & { status(): Promise<NodeStatus> };

export function wireDirectory(
  transport: Pick<TcpTransport, "call">,
  to: Address,
  { clock, random, deadlineMs }: { readonly clock: Clock; readonly random: Random; readonly deadlineMs: number },
): WireDirectory {
  const never = new AbortController().signal;
  /** Only reads, so a failed call may always be repeated. */
  async function call(method: string, body: unknown = null): Promise<unknown> {
    const untilMs = clock.monotonicMs() + deadlineMs;
    const backoff = new Backoff({ backoffMs: 20, backoffMsMax: 1_000 }, random);
    for (;;) {
      try {
        return await transport.call(to, method, body, never);
      } catch (error) {
        const waitMs = backoff.next();
        if (!isFault(error) || !isWorthRetrying(error) || clock.monotonicMs() + waitMs >= untilMs) throw error;
        await clock.sleep(waitMs);
      }
    }
  }
  let known: Promise<Cluster> | undefined;
  return {
    cluster: () => (known ??= call("cluster") as Promise<Cluster>),
    nodes: async () => (await call("nodes")) as readonly NodeSeen[],
    ownerships: async () => (await call("ownerships")) as readonly Ownership[],
    status: async () => (await call("status")) as NodeStatus,
    history: {
      job: async (shard, job) => ((await call("history.job", { shard, job })) as JobHistory | null) ?? undefined,
      jobs: async (query) => (await call("history.jobs", query)) as Awaited<ReturnType<History["jobs"]>>,
      count: async (filter) => (await call("history.count", filter)) as EndedCount,
    },
  };
}
