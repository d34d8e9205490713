/** A node's status, for `millrace nodes` and `millrace shards`. */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { Epoch, NodeId, Seq } from "#journal/journal.ts";
import type { ShardHost } from "./host/host.ts";
import type { HostedPhase, HostedShard } from "./host/shard.ts";
import type { Keeper } from "./keeper/keeper.ts";
import type { HistoryLag } from "./history/projector.ts";

export type NodeStatus = {
  readonly node: NodeId;
  readonly address: string;
  readonly state: "new" | "up" | "leaving" | "ended";
  /** Estimated memory of the work in all its shards, and the limit above which new work is refused. */
  readonly memory?: { readonly workBytes: number; readonly workBytesMax: number };
  readonly shards: readonly ShardStatus[];
};

export type ShardStatus = {
  readonly shard: ShardId;
  /** "loading": its log is being read. "trouble": it could not be served; `trouble` says why. */
  readonly phase: HostedPhase | "loading" | "trouble";
  readonly epoch: Epoch;
  readonly seq: Seq;
  readonly leaseMs: number;
  readonly trouble: string | undefined;
  readonly jobs: number;
  readonly claims: number;
  /** Waiting tasks, by the labels that they require. */
  readonly ready: readonly ReadyDepth[];
  readonly stateBytes: number;
  /** Requests that are not answered yet, executors that wait for work, and watchers. */
  readonly requests: number;
  readonly waiters: number;
  readonly watchers: number;
  readonly historyLagRows: number;
  readonly historyLagMs: number;
  readonly snapshotSeq: Seq;
};

/** The metrics show the others. */
const classesShown = 100;

export type ReadyDepth = { readonly requires: readonly string[]; readonly tasks: number };

type Progress = { readonly history: HistoryLag; readonly snapshotSeq: Seq };

export function shardStatuses(
  keeper: Keeper,
  host: ShardHost,
  clock: Clock,
  progressOf: (shard: HostedShard) => Progress,
): readonly ShardStatus[] {
  const mono = clock.monotonicMs();
  const { troubles } = keeper;
  const held = [...keeper.held.values()].map(({ shard, epoch, lease, phase }): ShardStatus => {
    const hosted = host.shards.get(shard);
    const leaseMs = Math.max(0, Math.floor(lease.untilMono - mono));
    const base = { ...nothing, shard, epoch, leaseMs, trouble: troubles.get(shard)?.why };
    if (!hosted) return { ...base, phase: phase === "serving" ? "gone" : "loading" };
    return { ...base, ...describe(hosted, progressOf(hosted)) };
  });
  const lost = [...troubles].filter(([shard]) => !keeper.held.has(shard));
  const troubled = lost.map(([shard, { why }]): ShardStatus => ({ ...nothing, shard, phase: "trouble", trouble: why }));
  return [...held, ...troubled].toSorted((a, b) => a.shard - b.shard);
}

function describe(hosted: HostedShard, { history, snapshotSeq }: Progress) {
  const { phase, durableSeq: seq, state, requests, waiters, watchers } = hosted;
  return {
    phase,
    seq,
    jobs: state.jobs.size,
    claims: state.claims,
    ready: state.ready
      .waiting()
      .slice(0, classesShown)
      .map(({ requires, ready: tasks }) => ({ requires, tasks })),
    stateBytes: state.bytes,
    requests,
    waiters: waiters.size,
    watchers: watchers.size,
    historyLagRows: history.rows,
    historyLagMs: Math.floor(history.ms),
    snapshotSeq,
  };
}

const nothing = {
  epoch: 0,
  seq: 0,
  leaseMs: 0,
  trouble: undefined,
  jobs: 0,
  claims: 0,
  ready: [],
  stateBytes: 0,
  requests: 0,
  waiters: 0,
  watchers: 0,
  historyLagRows: 0,
  historyLagMs: 0,
  snapshotSeq: 0,
};
