/**
 * One journal over several databases, by a fixed map from shard to database. A shard's log, lease and epoch are in one
 * database, so fencing needs only one transaction. Nodes announce themselves in every database, because each of them
 * refuses nodes that are too old.
 *
 * An append to several databases is not one transaction: if one part was done and another was not, the whole has an
 * unknown outcome, and the tails settle it. Hosts that keep each append within one database never see this.
 */
import { must } from "#base/assert.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { encodeCursor, jobsStart, newestFirst } from "./history/cursor.ts";
import type { JobRow } from "#base/history-rows.ts";
import type { AppendResult, Batch, Cluster, History, Journal } from "./journal.ts";

export type PartitionedOptions = {
  /** The first one holds the list of nodes, and what all nodes share for a while. */
  readonly databases: readonly [Journal, ...Journal[]];
  /** Index of the database that holds a shard; must never change for a store. */
  readonly databaseOf: (shard: ShardId) => number;
};

export function partitionedJournal({ databases, databaseOf }: PartitionedOptions): Journal {
  const [first] = databases;
  const at = (shard: ShardId): Journal => must(databases[databaseOf(shard)], `database of shard ${shard}`);
  const each = <T>(ask: (journal: Journal) => Promise<T>): Promise<T[]> => Promise.all(databases.map(ask));
  const split = <T extends { readonly shard: ShardId }>(items: readonly T[]): Map<Journal, T[]> =>
    Map.groupBy(items, ({ shard }) => at(shard));

  const cluster = (all: readonly Cluster[]): Cluster => {
    const known = must(all[0], "cluster of the first database");
    if (all.some(({ clusterId, shards }) => clusterId !== known.clusterId || shards !== known.shards))
      throw new Fault("invalid", "open journal", { why: "the databases belong to different clusters" });
    // New kinds of event only when every database refuses nodes that cannot read them.
    return { ...known, featureLevel: Math.min(...all.map(({ featureLevel }) => featureLevel)) };
  };

  return {
    async open(wanted) {
      const { clusterId, shards } = await first.open(wanted);
      return cluster(await each((journal) => journal.open({ clusterId, shards })));
    },
    cluster: async () => cluster(await each((journal) => journal.cluster())),

    append: (batches) => appendOver(split(batches), batches, first),
    async confirm(owned) {
      const answers = new Map<object, boolean>();
      await Promise.all(
        [...split(owned)].map(async ([journal, part]) => {
          const current = await journal.confirm(part);
          for (const [i, item] of part.entries()) answers.set(item, current[i] ?? false);
        }),
      );
      return owned.map((item) => answers.get(item) ?? false);
    },
    tail: (shard) => at(shard).tail(shard),
    read: (shard, fromSeq) => at(shard).read(shard, fromSeq),
    saveSnapshot: (shard, position, chunks) => at(shard).saveSnapshot(shard, position, chunks),
    loadSnapshot: (shard) => at(shard).loadSnapshot(shard),
    recordSegment: (segment, epoch) => at(segment.shard).recordSegment(segment, epoch),
    segments: (shard) => at(shard).segments(shard),
    trim: (shard, epoch, throughSeq) => at(shard).trim(shard, epoch, throughSeq),
    findKeys: (shard, keys, atMs) => at(shard).findKeys(shard, keys, atMs),
    trimKeys: (shard, atMs, limit) => at(shard).trimKeys(shard, atMs, limit),

    acquire: (shard, node, wanted) => at(shard).acquire(shard, node, wanted),
    async renew(node, held, leaseMs) {
      if (held.length === 0) return await first.renew(node, held, leaseMs);
      const renewals = await Promise.all(
        // A database that cannot be reached costs its own shards their leases, not those of the others.
        [...split(held)].map(([journal, part]) => journal.renew(node, part, leaseMs).catch((error: unknown) => error)),
      );
      const done = renewals.filter((renewal) => !(renewal instanceof Error)) as Awaited<ReturnType<Journal["renew"]>>[];
      if (done.length === 0) throw renewals[0];
      const storeNowMs = Math.min(...done.map((renewal) => renewal.storeNowMs));
      return { held: done.flatMap((renewal) => renewal.held), storeNowMs };
    },
    release: (shard, epoch, successor) => at(shard).release(shard, epoch, successor),
    async ownerships() {
      const all = await each((journal) => journal.ownerships());
      const rows = all.flatMap((part, i) => part.filter(({ shard }) => databaseOf(shard) === i));
      return rows.toSorted((a, b) => a.shard - b.shard);
    },

    announce: async (row, ttlMs) => void (await each((journal) => journal.announce(row, ttlMs))),
    nodes: () => first.nodes(),
    raiseFeatureLevel: async () => Math.min(...(await each((journal) => journal.raiseFeatureLevel()))),

    async describe() {
      const all = await each((journal) => journal.describe());
      const notes = all.flatMap((part, i) => part.notes.map((note) => `database ${i}: ${note}`));
      return { kind: `${databases.length} databases`, durable: all.every(({ durable }) => durable), notes };
    },
    history: historyOver(databases, at),
    entries: first.entries,
    close: async () => void (await each((journal) => journal.close())),
  };
}

async function appendOver(
  parts: ReadonlyMap<Journal, readonly Batch[]>,
  batches: readonly Batch[],
  first: Journal,
): Promise<AppendResult> {
  const [only] = parts.keys();
  if (parts.size < 2) return await (only ?? first).append(batches);
  const settled = await Promise.allSettled([...parts].map(([journal, part]) => journal.append(part)));
  const failures = settled.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
  if (failures.length > 0) {
    if (failures.length === parts.size && failures.every((failure) => !isFault(failure, "unknown-outcome")))
      throw failures[0];
    throw new Fault("unknown-outcome", "append", { databases: parts.size, failed: failures.length }, failures[0]);
  }
  const results = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const outcomes = new Map<Batch, "appended" | "fenced">();
  for (const [i, part] of [...parts.values()].entries())
    for (const [j, batch] of part.entries()) outcomes.set(batch, must(results[i]?.outcomes[j], "outcome of a batch"));
  return {
    outcomes: batches.map((batch) => must(outcomes.get(batch), "outcome of a batch")),
    storeNowMs: Math.min(...results.map(({ storeNowMs }) => storeNowMs)),
  };
}

function historyOver(databases: readonly Journal[], at: (shard: ShardId) => Journal): History {
  return {
    record: (shard, position, rows) => at(shard).history.record(shard, position, rows),
    cursor: (shard) => at(shard).history.cursor(shard),
    reset: (shard, epoch) => at(shard).history.reset(shard, epoch),
    job: (shard, job) => at(shard).history.job(shard, job),
    async jobs(query) {
      jobsStart(query);
      const pages = await Promise.all(databases.map(({ history }) => history.jobs(query)));
      const merged: JobRow[] = pages.flatMap(({ jobs }) => jobs).toSorted(newestFirst);
      const jobs = merged.slice(0, query.limit);
      const isMore = merged.length > query.limit || pages.some(({ cursor }) => cursor !== undefined);
      const last = jobs.at(-1);
      return { jobs, cursor: isMore && last ? encodeCursor(last) : undefined };
    },
    trim: (shard, endedBeforeMs, limit) => at(shard).history.trim(shard, endedBeforeMs, limit),
  };
}
