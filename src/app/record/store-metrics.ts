/**
 * The store in /metrics: hits, misses and bytes in both directions, by door and tenant. Callers choose tenant names, so
 * only a limited number have series of their own; the others share one called `other`.
 */
import { parseDigest, type Digest } from "#base/digest.ts";
import type { ActionIndex, EntryKey } from "#blobs/action-index.ts";
import { observed, type StoreObserver } from "#blobs/observed.ts";
import type { Store, TenantStore } from "#blobs/store.ts";
import type { Upload, Uploads } from "#blobs/uploads.ts";
import type { StoreFigures } from "#blobs/upkeep.ts";
import type { Counter } from "#edge/metrics/series.ts";
import type { Family, MetricsRegistry } from "#edge/metrics/registry.ts";

const tenantsMax = 100;

/** The counters of one door for one tenant. */
class Tally {
  readonly families: Families;
  readonly hits: Counter;
  readonly misses: Counter;
  /** Lookups of results and names. */
  readonly results: { readonly hit: Counter; readonly miss: Counter };
  readonly readBytes: Counter;
  readonly writtenBytes: Counter;

  constructor(families: Families, door: string, tenant: string) {
    const { lookups, bytes } = families;
    this.families = families;
    this.hits = lookups.with(door, tenant, "blob", "hit");
    this.misses = lookups.with(door, tenant, "blob", "miss");
    const result = (outcome: string): Counter => lookups.with(door, tenant, "result", outcome);
    this.results = { hit: result("hit"), miss: result("miss") };
    this.readBytes = bytes.with(door, tenant, "read");
    this.writtenBytes = bytes.with(door, tenant, "written");
  }
}

type Families = { readonly lookups: Family<Counter>; readonly bytes: Family<Counter> };

export class StoreMetrics {
  #families: Families | undefined;
  readonly #tenants = new Set<string>();
  /**
   * By door, then by tenant: every lookup of a result uses it, so building a combined key each time would be
   * noticeable.
   */
  readonly #tallies = new Map<string, Map<string, Tally>>();

  /** Counts from now on. */
  bind(registry: MetricsRegistry, figures: (() => StoreFigures) | undefined): void {
    this.#tallies.clear();
    this.#families = {
      lookups: registry.counter({
        name: "millrace_store_lookups_total",
        help: "Reads of blobs and lookups of results, by door, tenant and whether they were there.",
        labels: ["door", "tenant", "what", "outcome"],
        seriesMax: 4_000,
      }),
      bytes: registry.counter({
        name: "millrace_store_bytes_total",
        help: "Bytes of blobs read and written, as they are kept, by door and tenant.",
        labels: ["door", "tenant", "direction"],
        seriesMax: 2_000,
      }),
    };
    if (figures) diskMetrics(registry, figures);
  }

  /** A result or a name was looked up. */
  looked(door: string, tenant: string, outcome: "hit" | "miss"): void {
    this.#tally(door, tenant)?.results[outcome].add();
  }

  /** The store as a door uses it. */
  store(inner: Store, door: string): Store {
    const made = new WeakMap<TenantStore, TenantStore>();
    return {
      close: () => inner.close(),
      forTenant: (tenant) => {
        const found = inner.forTenant(tenant);
        let counted = made.get(found);
        if (!counted) made.set(found, (counted = this.#counted(found, door, tenant)));
        return counted;
      },
    };
  }

  /** The index as a door uses it; the space tells which door. */
  index(inner: ActionIndex): ActionIndex {
    const counted = new WeakSet<EntryKey>();
    const tell = (key: EntryKey, isFound: boolean): void => {
      const door = doorOf(key.space);
      if (door === undefined) return;
      if (!counted.has(key)) this.looked(door, key.tenant, isFound ? "hit" : "miss");
      counted.add(key); // a caller that was answered at once may ask again to be sure
    };
    return {
      put: (...args) => inner.put(...args),
      remove: (...args) => inner.remove(...args),
      list: (filter) => inner.list(filter),
      async get(key) {
        const entry = await inner.get(key);
        tell(key, entry !== undefined);
        return entry;
      },
      ...(inner.prompt && {
        prompt(key: EntryKey) {
          const entry = inner.prompt?.(key);
          if (entry) tell(key, true);
          return entry;
        },
      }),
      // Not counted here: only lookups of action results use it, and the build door counts those.
      ...(inner.promptHash && { promptHash: inner.promptHash }),
    };
  }

  #named(tenant: string): string {
    if (this.#tenants.size < tenantsMax) this.#tenants.add(tenant);
    return this.#tenants.has(tenant) ? tenant : "other";
  }

  #tally(door: string, tenant: string): Tally | undefined {
    if (!this.#families) return undefined;
    const name = this.#named(tenant);
    let ofDoor = this.#tallies.get(door);
    if (!ofDoor) this.#tallies.set(door, (ofDoor = new Map()));
    let tally = ofDoor.get(name);
    if (!tally) ofDoor.set(name, (tally = new Tally(this.#families, door, name)));
    return tally;
  }

  #counted({ blobs, near, uploads }: TenantStore, door: string, tenant: string): TenantStore {
    let bound: Tally | undefined;
    const tally = (): Tally | undefined =>
      bound && bound.families === this.#families ? bound : (bound = this.#tally(door, tenant));
    const observer = countingObserver(tally);
    const counted = { blobs: observed(blobs, observer), uploads: countedUploads(uploads, tally) };
    return near ? { ...counted, near: observed(near, observer) } : counted;
  }
}

/** The spaces of the HTTP caches, by their first word. */
const doors = new Set(["ac-http", "cas-http", "ccache", "sccache", "gradle", "turborepo", "nx"]);

const doorOf = (space: string): string | undefined => {
  const slash = space.indexOf("/");
  const word = slash === -1 ? space : space.slice(0, slash);
  return doors.has(word) ? word : undefined;
};

type CurrentTally = () => Tally | undefined;

const uncounted = { ended: () => {} };

const countingObserver = (tally: CurrentTally): StoreObserver => ({
  begin({ name, digest }) {
    const counts = tally();
    if (!counts || digest === undefined) return uncounted;
    if (name === "write") return { ended: (outcome) => outcome === "ok" && counts.writtenBytes.add(sizeOf(digest)) };
    let isFound = false;
    return {
      part(sizeBytes) {
        if (!isFound) counts.hits.add();
        isFound = true;
        counts.readBytes.add(sizeBytes);
      },
      ended: (outcome) => outcome === "not-found" && counts.misses.add(),
    };
  },
  lent(sizeBytes) {
    const counts = tally();
    counts?.hits.add();
    counts?.readBytes.add(sizeBytes);
  },
});

const countedUploads = (inner: Uploads, tally: CurrentTally): Uploads => ({
  committed: (key) => inner.committed(key),
  async open(key, offset, how) {
    const upload = await inner.open(key, offset, how);
    const counted: Upload = {
      get sizeBytes() {
        return upload.sizeBytes;
      },
      append: (bytes) => upload.append(bytes),
      async finish() {
        await upload.finish();
        tally()?.writtenBytes.add(sizeOf(key.digest));
      },
      suspend: () => upload.suspend(),
    };
    return counted;
  },
});

const sizeOf = (digest: Digest): number => parseDigest(digest)?.sizeBytes ?? 0;

function diskMetrics(registry: MetricsRegistry, figures: () => StoreFigures): void {
  const gauge = (name: string, help: string) => registry.gauge({ name, help }).with();
  const used = gauge("millrace_disk_used_bytes", "Bytes stored on this node's disk.");
  const limit = gauge("millrace_disk_limit_bytes", "Bytes that may be stored there.");
  const age = gauge(
    "millrace_eviction_age_seconds",
    "How long the last evicted blob had been unused; 0: none was evicted.",
  );
  const evicted = registry
    .counter({ name: "millrace_evicted_blobs_total", help: "Blobs evicted from the disk store." })
    .with();
  const bytes = registry
    .counter({ name: "millrace_evicted_bytes_total", help: "Bytes evicted from the disk store." })
    .with();
  const counter = (name: string, help: string) => registry.counter({ name, help }).with();
  const damaged = counter(
    "millrace_damaged_blobs_total",
    "Damaged blobs that were found in the disk store and dropped.",
  );
  const checked = counter("millrace_checked_bytes_total", "Bytes of large blobs that were hashed again.");
  const scrubbed = gauge("millrace_scrubbed_bytes", "Bytes that the scrubber has read in its present or last pass.");
  const scrubEnded = gauge(
    "millrace_scrub_ended_seconds",
    "When the scrubber last read the whole store, in seconds since 1970; 0: it never did.",
  );
  registry.beforeText(() => {
    const now = figures();
    damaged.value = now.damagedBlobs;
    checked.value = now.checkedBytes;
    scrubbed.set(now.scrub.bytes);
    scrubEnded.set(now.scrub.endedAtMs / 1_000);
    used.set(now.usedBytes);
    limit.set(now.sizeBytesMax);
    age.set(now.evictionAgeSec);
    evicted.value = now.evictedBlobs;
    bytes.value = now.evictedBytes;
  });
}
