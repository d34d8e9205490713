/** Rebuilds the history of shards that no node serves, while this folder's node is stopped. */
import { existsSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import type { Epoch, Journal, NodeId } from "#journal/journal.ts";
import { rebuildHistory, type RebuildProgress } from "#shard/history/rebuild-history.ts";
import { featuresHere } from "#shard/features.ts";
import { openStore } from "#app/compose/store/store.ts";
import { checkCluster, openJournal } from "#app/compose/journal.ts";
import type { Config } from "#app/config/config.ts";
import { lockFolder, nodeName, type DataFolder } from "./data-folder.ts";
import { systemClock } from "#door/system-clock.ts";

export type RebuildOutcome =
  | { readonly kind: "rebuilt"; readonly shard: ShardId; readonly throughSeq: number; readonly rows: number }
  /** A node owns it, so it was skipped. */
  | { readonly kind: "owned"; readonly shard: ShardId; readonly owner: NodeId }
  | { readonly kind: "refused"; readonly shard: ShardId; readonly why: string }
  | { readonly kind: "failed"; readonly shard: ShardId; readonly error: unknown };

export type RebuildAllPorts = {
  readonly clock?: Clock;
  readonly log: (line: string) => void;
  /** All shards if left out. */
  readonly only?: ShardId | undefined;
  readonly onProgress?: (progress: RebuildProgress) => void;
};

const doing = "rebuild history";

export async function* rebuildHistories(
  config: Config,
  folder: DataFolder,
  { clock = systemClock, log, only, onProgress = () => {} }: RebuildAllPorts,
): AsyncGenerator<RebuildOutcome> {
  checkThere(config, folder);
  await using undo = new AsyncDisposableStack();
  undo.use(await lockStopped(folder));
  const node = await nodeName(folder, config.node.name);
  const journal = await openJournal(config, folder, clock);
  undo.defer(() => journal.close());
  const { clusterId, shards } = await journal.cluster();
  const cluster = await journal.open({ clusterId, shards });
  checkCluster(config, cluster, log);
  if (only !== undefined && only >= shards) throw new Fault("not-found", doing, { shard: only, shards });
  const store = await openStore(config, folder, { clock, log });
  undo.defer(() => store.close());
  const { blobs } = store;
  const leaseMs = config.cluster.ownerLease;

  for (const shard of only === undefined ? Array(shards).keys() : [only]) {
    // Under the name of the stopped node, whose own lease need not expire first.
    const acquired = await journal.acquire(shard, node, { leaseMs, features: featuresHere });
    if (acquired.kind === "held") {
      yield { kind: "owned", shard, owner: acquired.by };
      continue;
    }
    if (acquired.kind === "refused") {
      yield { kind: "refused", shard, why: acquired.why };
      continue;
    }
    const { epoch } = acquired;
    await using lease = keepLease(journal, { node, shard, epoch }, leaseMs, clock);
    yield await rebuildHistory({ journal, blobs, limits: defaultLimits, clock }, shard, epoch, { onProgress }).then(
      (rebuilt) => ({ kind: "rebuilt" as const, ...rebuilt }),
      (error: unknown) => ({ kind: "failed" as const, shard, error: lease.lost ?? error }),
    );
  }
}

function checkThere({ journal }: Config, folder: DataFolder): void {
  if (journal.kind === "memory")
    throw new Fault("invalid", doing, { why: "a journal in memory ends with its node: there is nothing to read" });
  const directory = journal.kind === "sqlite" ? (journal.directory ?? folder.journal) : undefined;
  if (directory !== undefined && !existsSync(directory))
    throw new Fault("not-found", doing, { directory, why: "there is no journal" });
}

async function lockStopped(folder: DataFolder): Promise<AsyncDisposable> {
  try {
    return await lockFolder(folder);
  } catch (cause) {
    if (!isFault(cause, "exhausted")) throw cause;
    const { heldBy } = cause.facts;
    throw new Fault(
      "exhausted",
      doing,
      { folder: folder.path, heldBy, why: "a node is running there: stop it first" },
      cause,
    );
  }
}

type Held = { readonly node: NodeId; readonly shard: ShardId; readonly epoch: Epoch };
type Lease = AsyncDisposable & { readonly lost: Fault | undefined };

/** Renews the lease until it is disposed, then releases it. If the lease is lost, the fence refuses every write. */
function keepLease(journal: Journal, held: Held, leaseMs: number, clock: Clock): Lease {
  const { node, shard, epoch } = held;
  let cancel = (): void => {};
  let lost: Fault | undefined;
  const renew = async (): Promise<void> => {
    try {
      const renewed = await journal.renew(node, [{ shard, epoch }], leaseMs);
      if (!renewed.held.includes(shard)) lost = new Fault("stale", doing, { shard, why: "another node has taken it" });
    } catch {
      // The next renewal may succeed; if none does, the writes fail.
    }
  };
  const schedule = (): void => {
    cancel = clock.after(leaseMs / 3, () => {
      schedule();
      void renew();
    });
  };
  schedule();
  return {
    get lost() {
      return lost;
    },
    async [Symbol.asyncDispose]() {
      cancel();
      await journal.release(shard, epoch);
    },
  };
}
