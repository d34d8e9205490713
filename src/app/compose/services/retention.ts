/** What a node keeps until a declared time: named blobs, and the results of jobs of doors that promise them. */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { Door } from "#door/door.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Journal } from "#journal/journal.ts";
import type { Result } from "#kernel/model/model.ts";
import type { Records } from "#records/watch.ts";
import { RetentionKeeper, type KeeperEvent } from "#retention/keeper.ts";
import { pinSliceMs, type Keeps, type Pins as KeepPins } from "#retention/keeps.ts";
import { ResultsKeeper, type JobResults } from "#retention/results.ts";
import { shardOf } from "#shard/client/client.ts";
import type { PinsOf } from "#shard/host/prepare.ts";
import type { Node } from "#shard/node.ts";
import type { Config } from "#app/config/config.ts";
import type { ComposedStore } from "#app/compose/store/store.ts";

type RetentionParts = {
  readonly config: Config;
  readonly keeps: Keeps;
  readonly records: Records;
  readonly pins: PinsOf;
  readonly clock: Clock;
  readonly journal: Pick<Journal, "history">;
  readonly node: Pick<Node, "keeper" | "cluster" | "host">;
  readonly doors: readonly Door[];
  readonly log: (line: string) => void;
};

const pageMax = 200;

type KeptOf = (result: Pick<Result, "payload" | "digests">) => readonly Digest[];

const allOf: KeptOf = ({ digests }) => digests;

/** By the names of the jobs whose results are kept: what of a result is. */
const keptOf = (doors: readonly Door[]): ReadonlyMap<string, KeptOf> =>
  new Map(
    doors.flatMap(({ kinds, keepsResults }) =>
      keepsResults ? kinds.map(({ door }) => [door, keepsResults === true ? allOf : keepsResults] as const) : [],
    ),
  );

/** The names of the jobs whose results are kept as a whole. */
const keepingNames = (doors: readonly Door[]): ReadonlySet<string> =>
  new Set([...keptOf(doors)].filter(([, kept]) => kept === allOf).map(([door]) => door));

export function startRetention(parts: RetentionParts) {
  const { config, keeps, records, pins, clock, journal, node, doors, log } = parts;
  let observed: ((event: KeeperEvent) => void) | undefined;
  const observe = (event: KeeperEvent): void => observed?.(event);
  const owns = (key: string): boolean => node.keeper.held.has(shardOf(`kept ${key}`, node.cluster.shards));
  const names = keptOf(doors);
  const keepMs = Math.min(config.history.results, config.history.keep ?? Infinity);
  const keeper = new RetentionKeeper({ keeps, records, clock, owns, log, observe });
  const results = new ResultsKeeper({
    keeps,
    pins: (tenant) => pins(tenant, "any", ""),
    clock,
    jobs: (fromMs, signal) => jobResults({ node, journal, names }, fromMs, signal),
    keepMs,
    log,
    observe,
  });
  const show = (registry: MetricsRegistry): void => {
    const kept = registry.gauge({ name: "millrace_kept_names", help: "Names that are kept until their time." }).with();
    registry.beforeText(() => kept.set(keeper.count));
    const pinned = registry.counter({
      name: "millrace_kept_events_total",
      help: "Pins that this node renewed, names whose time was over, and blobs that were gone too early.",
      labels: ["outcome"],
    });
    observed = ({ kind }) => pinned.with(kind).add(1);
  };
  return { keeper, results, show, resultsKeptMs: (door: string) => (names.has(door) ? keepMs : undefined) };
}

/** Results of jobs of this node's shards: live ones from memory, the others from history. */
async function* jobResults(
  { node, journal, names }: Pick<RetentionParts, "node" | "journal"> & { readonly names: ReadonlyMap<string, KeptOf> },
  fromMs: number,
  signal: AbortSignal,
): AsyncGenerator<JobResults> {
  for (const { state, phase } of node.host.shards.values()) {
    if (phase !== "serving") continue;
    for (const job of state.jobs.values().toArray()) {
      const kept = names.get(job.door);
      if (!kept) continue;
      const digests = job.stages.flatMap(({ tasks }) => tasks.flatMap(({ result }) => (result ? kept(result) : [])));
      yield { tenant: job.tenant.name, endedAtMs: job.endedAtMs ?? 0, digests };
    }
  }
  for (const [door, kept] of names) {
    let cursor: string | undefined;
    do {
      const page = await journal.history.jobs({ door, fromMs, limit: pageMax, cursor });
      for (const { shard, job, tenant, endedAtMs } of page.jobs) {
        if (endedAtMs === 0 || !node.keeper.held.has(shard) || signal.aborted) continue;
        const found = await journal.history.job(shard, job);
        if (!found) continue;
        const digests = found.tasks.flatMap(({ result, digests: all }) =>
          all.length > 0 ? kept({ payload: result, digests: all }) : [],
        );
        yield { tenant, endedAtMs, digests };
      }
      ({ cursor } = page);
    } while (cursor !== undefined && !signal.aborted);
  }
}

/** A door names only blobs that its caller has stored: they are kept wherever they are. */
export const keepPins =
  ({ pins, store }: Pick<ComposedStore, "pins" | "store">): KeepPins =>
  (tenant) => ({
    pin: (digests, forMs) => pins(tenant, "any", "").pin(digests, forMs),
    read: (digest, range, form) => store.forTenant(tenant).blobs.read(digest, range, form),
  });

/** At the commit of a result that is kept, its first pin is long enough for the keeper to renew it in time. */
export function keepingPins(pins: PinsOf, doors: readonly Door[]): PinsOf {
  const names = keepingNames(doors);
  const longer = new WeakMap<Pins, Pins>();
  return (tenant, whose, door) => {
    const inner = pins(tenant, whose, door);
    if (!names.has(door)) return inner;
    let found = longer.get(inner);
    if (!found) longer.set(inner, (found = pinningLonger(inner)));
    return found;
  };
}

type Pins = ReturnType<PinsOf>;

const pinningLonger = (inner: Pins): Pins => ({
  async pin(digests, forMs) {
    try {
      return await inner.pin(digests, Math.max(forMs, pinSliceMs));
    } catch (error) {
      if (!isFault(error, "invalid")) throw error; // a store that allows only shorter pins, or no digest
      return await inner.pin(digests, forMs);
    }
  },
});
