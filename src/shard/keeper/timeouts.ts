import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Journal } from "#journal/journal.ts";

/** The part of a journal that the keeper needs. */
export type KeeperJournal = Pick<
  Journal,
  "partition" | "acquire" | "renew" | "release" | "tail" | "ownerships" | "announce" | "nodes" | "raiseFeatureLevel"
>;

/** Adds a timeout: a call that never returns must not block the others. After `ms` its outcome is unknown. */
export function withTimeouts(journal: KeeperJournal, clock: Clock, ms: number): KeeperJournal {
  const within = async <T>(doing: string, call: Promise<T>): Promise<T> => {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = clock.after(ms, () => reject(new Fault("unknown-outcome", doing, { why: "no answer", ms })));
    try {
      return await Promise.race([call, late]);
    } finally {
      cancel();
    }
  };
  return {
    ...(journal.partition && { partition: journal.partition }),
    acquire: (shard, node, wanted) => within("acquire shard", journal.acquire(shard, node, wanted)),
    renew: (node, held, leaseMs) => within("renew leases", journal.renew(node, held, leaseMs)),
    release: (shard, epoch, successor) => within("release shard", journal.release(shard, epoch, successor)),
    tail: (shard) => within("read tail", journal.tail(shard)),
    ownerships: () => within("read ownerships", journal.ownerships()),
    announce: (row, ttlMs) => within("announce node", journal.announce(row, ttlMs)),
    nodes: () => within("read nodes", journal.nodes()),
    raiseFeatureLevel: () => within("raise the feature level", journal.raiseFeatureLevel()),
  };
}
