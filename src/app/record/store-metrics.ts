/**
 * The store in /metrics: what was found and what was not, and how many bytes went either way, by door and tenant.
 * Names of tenants are callers' words: so many have series of their own, the others share one called `other`.
 */
import { parseDigest, type Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { ActionIndex, EntryKey } from "#blobs/action-index.ts";
import type { BlobStore, Store, TenantStore } from "#blobs/store.ts";
import type { Upload, Uploads } from "#blobs/uploads.ts";
import type { StoreFigures } from "#blobs/upkeep.ts";
import type { Counter } from "#edge/metrics/series.ts";
import type { Family, MetricsRegistry } from "#edge/metrics/registry.ts";

const tenantsMax = 100;

/** What one door does for one tenant. */
class Tally {
  readonly families: Families;
  readonly hits: Counter;
  readonly misses: Counter;
  /** Of results and names. */
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
  /** By door, then by tenant: every lookup of a result passes here, and a text made for each would show. */
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

  /** Names as a door uses them; which door is told by the space. */
  index(inner: ActionIndex): ActionIndex {
    const counted = new WeakSet<EntryKey>();
    const tell = (key: EntryKey, isFound: boolean): void => {
      const door = doorOf(key.space);
      if (door === undefined) return;
      if (!counted.has(key)) this.looked(door, key.tenant, isFound ? "hit" : "miss");
      counted.add(key); // who was answered at once may ask again to be sure
    };
    return {
      put: (...asked) => inner.put(...asked),
      remove: (...asked) => inner.remove(...asked),
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
      // For results of actions, which the door counts itself.
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
    const counted = { blobs: countedBlobs(blobs, tally), uploads: countedUploads(uploads, tally) };
    return near ? { ...counted, near: countedBlobs(near, tally) } : counted;
  }
}

/** The spaces of the caches over HTTP, by their first word. */
const doors = new Set(["ac-http", "cas-http", "ccache", "sccache", "gradle", "turborepo", "nx"]);

const doorOf = (space: string): string | undefined => {
  const slash = space.indexOf("/");
  const word = slash === -1 ? space : space.slice(0, slash);
  return doors.has(word) ? word : undefined;
};

type Told = () => Tally | undefined;

function countedBlobs(inner: BlobStore, tally: Told): BlobStore {
  const { prompt } = inner;
  return {
    missing: (digests) => inner.missing(digests),
    pin: (digests, forMs) => inner.pin(digests, forMs),
    async write(digest, bytes, form) {
      await inner.write(digest, bytes, form);
      tally()?.writtenBytes.add(sizeOf(digest));
    },
    read: (digest, range, form) => countedRead(inner.read(digest, range, form), tally()),
    ...(inner.file && {
      async file(digest: Digest) {
        const lent = await inner.file?.(digest);
        if (lent) found(tally(), sizeOf(digest));
        return lent;
      },
    }),
    ...(prompt && {
      prompt: {
        ...prompt,
        bytes(digest: Digest) {
          const bytes = prompt.bytes(digest);
          if (bytes) found(tally(), bytes.length);
          return bytes;
        },
      },
    }),
  };
}

async function* countedRead(inner: AsyncIterable<Uint8Array>, tally: Tally | undefined): AsyncGenerator<Uint8Array> {
  let isFound = false;
  try {
    for await (const part of inner) {
      if (!isFound) tally?.hits.add();
      isFound = true;
      tally?.readBytes.add(part.length);
      yield part;
    }
  } catch (error) {
    if (isFault(error, "not-found")) tally?.misses.add();
    throw error;
  }
}

function found(tally: Tally | undefined, sizeBytes: number): void {
  tally?.hits.add();
  tally?.readBytes.add(sizeBytes);
}

const countedUploads = (inner: Uploads, tally: Told): Uploads => ({
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
  const used = gauge("millrace_disk_used_bytes", "What the store keeps on this node's disk.");
  const limit = gauge("millrace_disk_limit_bytes", "What it may keep there.");
  const age = gauge(
    "millrace_eviction_age_seconds",
    "How long the last that was let go of had not been used; 0: none was.",
  );
  const evicted = registry.counter({ name: "millrace_evicted_blobs_total", help: "Blobs that were let go of." }).with();
  const bytes = registry.counter({ name: "millrace_evicted_bytes_total", help: "Bytes that were." }).with();
  registry.beforeText(() => {
    const now = figures();
    used.set(now.usedBytes);
    limit.set(now.sizeBytesMax);
    age.set(now.evictionAgeSec);
    evicted.value = now.evictedBlobs;
    bytes.value = now.evictedBytes;
  });
}
