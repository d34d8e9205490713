/**
 * One journal over several databases (ADR 0046). A fixed map says which database holds a shard: its log, request keys,
 * lease, epoch, snapshot and history lie together, so fencing stays a matter of one transaction.
 *
 * Nodes announce themselves in every database, and each database keeps a feature level of its own: the cluster's level
 * is the lowest of them. What concerns all databases (the nodes, who owns what, the level) is answered by those that
 * can be reached; what concerns one shard fails or succeeds with the shard's database alone.
 *
 * An append over several databases is not one transaction: where one part was done and another was not, the whole
 * has an unknown outcome, and the tails tell. Hosts append by database (`partition`) and never see this.
 */
import { must } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { JobRow } from "#base/history-rows.ts";
import type { ShardId } from "#base/ids.ts";
import { encodeCursor, jobsStart, newestFirst } from "./history/cursor.ts";
import type { AppendResult, Batch, Cluster, History, Journal, NodeSeen, Ownership } from "./journal.ts";
import { isAway, PartDatabase } from "./part-database.ts";
import { recordsFrom } from "#records/engine.ts";
import type { RecordStore } from "#records/records.ts";
import { recordsSpread } from "#records/spread.ts";

export type PartitionedOptions = {
  /** In an order that never changes for a store: each database remembers its place. */
  readonly databases: readonly Journal[];
  readonly clock: Pick<Clock, "after">;
};

export function partitionedJournal({ databases: journals, clock }: PartitionedOptions): Journal {
  const databases = journals.map(
    (journal, i) => new PartDatabase(journal, { index: i, count: journals.length, clock }),
  );
  const databaseOf = (shard: ShardId): number => shard % databases.length;
  const at = (shard: ShardId): PartDatabase => must(databases[databaseOf(shard)], `database of shard ${shard}`);
  const split = <T extends { readonly shard: ShardId }>(items: readonly T[]): Map<PartDatabase, T[]> =>
    Map.groupBy(items, ({ shard }) => at(shard));
  const levels = (): number => Math.min(...databases.map(({ featureLevel }) => featureLevel));
  let seen: readonly Ownership[] = [];

  return {
    partition: { databases: databases.length, databaseOf },
    async open(wanted) {
      // The first that can be reached has the last word on what the others are created with.
      let known = wanted;
      const clusters: Cluster[] = [];
      const missed: unknown[] = [];
      for (const database of databases)
        try {
          const cluster = await database.open(known);
          clusters.push(cluster);
          known = cluster;
        } catch (error) {
          if (!isAway(error)) throw error;
          missed.push(error);
        }
      if (clusters.length === 0) throw missed[0];
      for (const database of databases) database.mustBe(known);
      return { ...sameCluster(clusters), featureLevel: levels() };
    },
    async cluster() {
      const clusters = await fromReachable(databases, (database) => database.cluster());
      return { ...sameCluster(clusters.filter((cluster) => cluster !== undefined)), featureLevel: levels() };
    },

    append: (batches) => appendOver(split(batches), batches, must(databases[0], "a database")),
    async confirm(owned) {
      const answers = new Map<object, boolean>();
      await Promise.all(
        [...split(owned)].map(async ([database, part]) => {
          const current = await database.ask((journal) => journal.confirm(part));
          for (const [i, item] of part.entries()) answers.set(item, current[i] ?? false);
        }),
      );
      return owned.map((item) => answers.get(item) ?? false);
    },
    tail: (shard) => at(shard).ask((journal) => journal.tail(shard)),
    read: (shard, fromSeq) => at(shard).iterate((journal) => journal.read(shard, fromSeq)),
    saveSnapshot: (shard, position, chunks) =>
      at(shard).ask((journal) => journal.saveSnapshot(shard, position, chunks)),
    loadSnapshot: (shard) => at(shard).ask((journal) => journal.loadSnapshot(shard)),
    recordSegment: (segment, epoch) => at(segment.shard).ask((journal) => journal.recordSegment(segment, epoch)),
    segments: (shard) => at(shard).ask((journal) => journal.segments(shard)),
    trim: (shard, epoch, throughSeq) => at(shard).ask((journal) => journal.trim(shard, epoch, throughSeq)),
    findKeys: (shard, keys, atMs) => at(shard).ask((journal) => journal.findKeys(shard, keys, atMs)),
    trimKeys: (shard, atMs, limit) => at(shard).ask((journal) => journal.trimKeys(shard, atMs, limit)),

    acquire: (shard, node, wanted) => at(shard).ask((journal) => journal.acquire(shard, node, wanted)),
    /** Leases of several databases are renewed or not, each by itself; keepers ask for one database at a time. */
    async renew(node, held, leaseMs) {
      const parts = held.length === 0 ? [[must(databases[0], "a database"), held] as const] : [...split(held)];
      const renewals = await Promise.all(
        parts.map(([database, part]) => database.ask((journal) => journal.renew(node, part, leaseMs))),
      );
      const storeNowMs = Math.min(...renewals.map((renewal) => renewal.storeNowMs));
      return { held: renewals.flatMap((renewal) => renewal.held), storeNowMs };
    },
    release: (shard, epoch, successor) => at(shard).ask((journal) => journal.release(shard, epoch, successor)),
    async ownerships() {
      const parts = await fromReachable(databases, (database) => database.askBriefly((each) => each.ownerships()));
      seen = ownershipsOf(parts, databaseOf, seen);
      return seen;
    },

    async announce(row, ttlMs) {
      await fromReachable(databases, (database) => database.askBriefly((journal) => journal.announce(row, ttlMs)));
    },
    async nodes() {
      const parts = await fromReachable(databases, (database) => database.askBriefly((journal) => journal.nodes()));
      return newestOf(parts.flatMap((part) => part ?? []));
    },
    async raiseFeatureLevel() {
      await fromReachable(databases, (database) => database.raiseFeatureLevel());
      return levels();
    },

    async describe() {
      const all = await fromReachable(databases, (database) => database.askBriefly((journal) => journal.describe()));
      const notes = all.flatMap((part, i) => {
        const { name } = must(databases[i], "a database");
        return part ? part.notes.map((note) => `${name}: ${note}`) : [`${name}: it does not answer`];
      });
      const kinds = new Set(all.flatMap((part) => part?.kind ?? []));
      const durable = all.every((part) => part?.durable !== false);
      return { kind: `${databases.length} databases of ${[...kinds].join(", ")}`, durable, notes };
    },
    history: historyOver(databases, at),
    // Short-lived answers and keys that all nodes share: all of them need one place, so the first database has them.
    entries: must(journals[0], "a database").entries,
    records: recordsSpread(databases.map(recordsOfPart)),
    close: async () => void (await Promise.all(journals.map((journal) => journal.close()))),
  };
}

/** A database that could not be reached at the start is opened when it is first asked. */
const recordsOfPart = (database: PartDatabase): RecordStore =>
  recordsFrom((op, args) =>
    database.ask(({ records }) => (records[op] as (...args: unknown[]) => Promise<unknown>)(...args)),
  );

/** What each database answers; undefined for one that cannot be reached. Where none can, the first one's Fault. */
async function fromReachable<T>(
  databases: readonly PartDatabase[],
  ask: (database: PartDatabase) => Promise<T>,
): Promise<readonly (T | undefined)[]> {
  const settled = await Promise.allSettled(databases.map(ask));
  const failures = settled.flatMap((each) => (each.status === "rejected" ? [each.reason as Error] : []));
  const wrong = failures.find((failure) => !isAway(failure));
  const [first] = failures;
  if (wrong) throw wrong;
  if (first && failures.length === databases.length) throw first;
  return settled.map((each) => (each.status === "fulfilled" ? each.value : undefined));
}

function sameCluster(clusters: readonly Cluster[]): Cluster {
  const known = must(clusters[0], "a cluster");
  if (clusters.some(({ clusterId, shards }) => clusterId !== known.clusterId || shards !== known.shards))
    throw new Fault("invalid", "open journal", { why: "the databases belong to different clusters" });
  return known;
}

/** Of a database that did not answer, the rows are as last seen, and say so. */
function ownershipsOf(
  parts: readonly (readonly Ownership[] | undefined)[],
  databaseOf: (shard: ShardId) => number,
  before: readonly Ownership[],
): readonly Ownership[] {
  const shards = Math.max(...parts.map((part) => part?.length ?? 0));
  const rows = parts.map((part) => new Map(part?.map((row) => [row.shard, row])));
  return Array.from({ length: shards }, (_, shard) => {
    const row = rows[databaseOf(shard)]?.get(shard);
    if (row) return row;
    const unknown = { shard, epoch: 0, owner: undefined, address: undefined, remainingMs: 0 };
    return { ...(before[shard] ?? unknown), unseen: true };
  });
}

/** A node that one database has not heard of lately is there if another has. */
function newestOf(rows: readonly NodeSeen[]): readonly NodeSeen[] {
  const newest = new Map<string, NodeSeen>();
  for (const row of rows) {
    const other = newest.get(row.node);
    if (!other || isNewer(row, other)) newest.set(row.node, row);
  }
  return [...newest.values()].toSorted((a, b) => (a.node < b.node ? -1 : 1));
}

const isNewer = (row: NodeSeen, than: NodeSeen): boolean =>
  row.alive === than.alive ? row.seenAgoMs < than.seenAgoMs : row.alive;

async function appendOver(
  parts: ReadonlyMap<PartDatabase, readonly Batch[]>,
  batches: readonly Batch[],
  first: PartDatabase,
): Promise<AppendResult> {
  const [only] = parts.keys();
  if (parts.size < 2) return await (only ?? first).ask((journal) => journal.append(batches));
  const settled = await Promise.allSettled(
    [...parts].map(([database, part]) => database.ask((journal) => journal.append(part))),
  );
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

function historyOver(databases: readonly PartDatabase[], at: (shard: ShardId) => PartDatabase): History {
  return {
    record: (shard, position, rows) => at(shard).ask(({ history }) => history.record(shard, position, rows)),
    cursor: (shard) => at(shard).ask(({ history }) => history.cursor(shard)),
    reset: (shard, epoch) => at(shard).ask(({ history }) => history.reset(shard, epoch)),
    job: (shard, job) => at(shard).ask(({ history }) => history.job(shard, job)),
    /** Of all databases or not at all: a list with a part missing would look whole. */
    async jobs(query) {
      jobsStart(query);
      const pages = await Promise.all(databases.map((database) => database.ask(({ history }) => history.jobs(query))));
      const merged: JobRow[] = pages.flatMap(({ jobs }) => jobs).toSorted(newestFirst);
      const jobs = merged.slice(0, query.limit);
      const isMore = merged.length > query.limit || pages.some(({ cursor }) => cursor !== undefined);
      const last = jobs.at(-1);
      return { jobs, cursor: isMore && last ? encodeCursor(last) : undefined };
    },
    async count(filter) {
      const counts = await Promise.all(databases.map((each) => each.ask(({ history }) => history.count(filter))));
      const byPhase = Map.groupBy(
        counts.flatMap(({ phases }) => phases),
        ({ phase }) => phase,
      );
      const phases = [...byPhase].map(([phase, found]) => ({
        phase,
        jobs: found.reduce((sum, { jobs }) => sum + jobs, 0),
      }));
      return { phases, capped: counts.some(({ capped }) => capped) };
    },
    trim: (shard, endedBeforeMs, limit) => at(shard).ask(({ history }) => history.trim(shard, endedBeforeMs, limit)),
  };
}
