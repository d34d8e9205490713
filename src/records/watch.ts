/**
 * Records with watching: what this node changes is seen at once, what others change by looking every so often. A
 * watcher holds one version per tenant, and no records but those that it passes on.
 */
import type { Clock } from "#base/clock.ts";
import { recordPageMax, type RecordStore, type StoredRecord } from "./records.ts";

export type Watched = {
  readonly tenant: string;
  /** What was said of this tenant's records before no longer counts: `changed`, here and in what follows, is all. */
  readonly isReset: boolean;
  readonly changed: readonly StoredRecord[];
  /** Names of records that are gone. */
  readonly removed: readonly string[];
};

export type WatchQuery = {
  /** Left out: of all tenants. */
  readonly tenant?: string | undefined;
  readonly kind: string;
};

export type Records = RecordStore & {
  /**
   * First all that is there, tenant by tenant, then what changes: the newest state of a record at least, in between
   * maybe not each. Ends when the signal is aborted; Faults of the store are thrown.
   */
  watch(query: WatchQuery, signal: AbortSignal): AsyncIterable<Watched>;
};

/** How long a change by another node may stay unseen. */
const lookEveryMs = 1_000;

export function watchedRecords(store: RecordStore, clock: Pick<Clock, "after">): Records {
  const waiting = new Map<string, Set<() => void>>(); // by kind
  const nudge = (kind: string): void => {
    for (const wake of waiting.get(kind) ?? []) wake();
  };
  const nudging = async <T>(kind: string, change: Promise<T>): Promise<T> => {
    try {
      return await change;
    } finally {
      nudge(kind);
    }
  };
  return {
    ...store,
    create: (id, document, limits) => nudging(id.kind, store.create(id, document, limits)),
    createAll: (of, given, limits) => nudging(of.kind, store.createAll(of, given, limits)),
    replace: (id, version, document, limits) => nudging(id.kind, store.replace(id, version, document, limits)),
    remove: (id, version) => nudging(id.kind, store.remove(id, version)),
    async *watch({ tenant, kind }, signal) {
      const wakers = waiting.get(kind) ?? new Set();
      waiting.set(kind, wakers);
      const seen = new Map<string, number>(); // by tenant
      while (!signal.aborted) {
        const waker = sleeper(clock, signal);
        wakers.add(waker.wake);
        try {
          for (const newest of await store.newest(kind))
            if (tenant === undefined || newest.tenant === tenant) yield* news(store, kind, newest, seen);
          await waker.slept;
        } finally {
          wakers.delete(waker.wake);
          waker.wake();
        }
      }
    },
  };
}

/** What a tenant's records have become since they were last looked at; `seen` is moved on. */
async function* news(
  store: RecordStore,
  kind: string,
  { tenant, version }: { readonly tenant: string; readonly version: number },
  seen: Map<string, number>,
): AsyncIterable<Watched> {
  let since = seen.get(tenant);
  while (since !== version) {
    const found = since === undefined ? undefined : await store.changes({ tenant, kind }, since);
    if (found?.kind === "changes") {
      if (found.changes.length === 0) return;
      seen.set(tenant, (since = found.through));
      const changed = found.changes.flatMap(({ record }) => record ?? []);
      const removed = found.changes.flatMap(({ name, record }) => (record ? [] : name));
      yield { tenant, isReset: false, changed, removed };
      if (since > version) return;
    } else {
      // What changes while it is listed has a newer version, and is told next.
      const through = found?.through ?? version;
      yield* everything(store, kind, tenant);
      seen.set(tenant, (since = through));
      if (since > version) return;
    }
  }
}

async function* everything(store: RecordStore, kind: string, tenant: string): AsyncIterable<Watched> {
  let cursor: string | undefined;
  let isReset = true;
  do {
    const page = await store.list({ tenant, kind, limit: recordPageMax, cursor });
    yield { tenant, isReset, changed: page.records, removed: [] };
    ({ cursor } = page);
    isReset = false;
  } while (cursor !== undefined);
}

function sleeper(
  clock: Pick<Clock, "after">,
  signal: AbortSignal,
): { readonly wake: () => void; readonly slept: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(lookEveryMs, resolve);
  const wake = (): void => {
    cancel();
    signal.removeEventListener("abort", wake);
    resolve();
  };
  signal.addEventListener("abort", wake);
  return { wake, slept: promise };
}
