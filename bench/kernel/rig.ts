/** The real node over a real store, in this process; cleans up everything afterwards. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Digest } from "#base/digest.ts";
import { Random } from "#base/random.ts";
import { systemClock } from "#door/system-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { sha256Digest, verified } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Journal } from "#journal/journal.ts";
import { postgresJournal } from "#journal/postgres/postgres.ts";
import { sqliteJournal } from "#journal/sqlite/sqlite.ts";
import { createNode, type Node, type NodeOptions } from "#shard/node.ts";
import type { PostgresServer } from "#testing/postgres.ts";
import { Asker } from "./asker.ts";
import { benchLimits } from "./limits.ts";

export type Store =
  | { readonly kind: "sqlite"; readonly directory?: string }
  | { readonly kind: "postgres"; readonly server: Pick<PostgresServer, "freshDatabase"> };

export type RigOptions = Pick<NodeOptions, "host" | "projector" | "snapshots" | "archiver" | "limits"> & {
  readonly store: Store;
  readonly shards?: number;
  readonly history?: boolean;
};

/** What was written to the log: the journal's own work, without the store's overhead. */
export type LogCount = { appends: number; bytes: number };

export class Rig extends Asker implements AsyncDisposable {
  readonly node: Node;
  readonly journal: Journal;
  readonly log: LogCount;
  readonly shards: number;
  readonly reports: string[];
  readonly #dispose: () => Promise<void>;

  private constructor(
    parts: Pick<Rig, "node" | "journal" | "log" | "digests" | "shards" | "reports">,
    end: () => Promise<void>,
  ) {
    const { node, digests, reports } = parts;
    super({ request: (request) => node.request(request), digests, reports });
    this.node = node;
    this.journal = parts.journal;
    this.log = parts.log;
    this.shards = parts.shards;
    this.reports = reports;
    this.#dispose = end;
  }

  static async start(options: RigOptions): Promise<Rig> {
    const { store, shards = 1, history = true } = options;
    const opened = await openStore(store);
    const log: LogCount = { appends: 0, bytes: 0 };
    const journal = counting(opened.journal, log);
    const reports: string[] = [];
    const { blobs, digests } = await blobStore();
    const node = createNode({
      id: "bench",
      clock: systemClock,
      journal,
      blobs,
      random: new Random("bench"),
      cluster: { shards, clusterId: "bench" },
      limits: options.limits ?? (() => benchLimits),
      ...(options.host && { host: options.host }),
      ...(options.snapshots && { snapshots: options.snapshots }),
      ...(options.archiver && { archiver: options.archiver }),
      projector: { ...options.projector, history },
      // A machine that stalls for seconds, as shared ones do, must not make the node lose its shards.
      keeper: { leaseMs: 60_000 },
      report: (doing, error) => void reports.push(`${doing}: ${String(error)}`),
    });
    await node.start();
    while (![...Array(shards).keys()].every((shard) => node.host.shards.get(shard)?.phase === "serving"))
      await systemClock.sleep(5);
    return new Rig({ node, journal, log, digests, shards, reports }, async () => {
      await node.stop();
      await opened.close();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose();
  }
}

async function openStore(store: Store): Promise<{ readonly journal: Journal; close(): Promise<void> }> {
  if (store.kind === "postgres") {
    const journal = postgresJournal({ url: await store.server.freshDatabase() });
    return { journal, close: () => journal.close() };
  }
  const directory = store.directory ?? temporaryDirectory();
  const journal = sqliteJournal({ directory });
  return {
    journal,
    async close() {
      await journal.close();
      if (store.directory === undefined) rmSync(directory, { recursive: true, force: true });
    },
  };
}

export const temporaryDirectory = (): string => mkdtempSync(join(tmpdir(), "millrace-bench-"));

function counting(journal: Journal, log: LogCount): Journal {
  return {
    ...journal,
    append(batches) {
      log.appends += 1;
      for (const { payload } of batches) log.bytes += payload.length;
      return journal.append(batches);
    },
  };
}

const blobsCount = 3_000;

/**
 * Results are few and small and stay in memory. The log's archived segments are checked like any blob and then dropped:
 * a minute of them would fill the benchmark's memory.
 */
async function blobStore(): Promise<{ readonly blobs: BlobStore; readonly digests: readonly Digest[] }> {
  const results = createMemoryBlobs({ clock: systemClock, sizeBytesMax: 1 << 20 });
  const archived = new Set<Digest>();
  const digests: Digest[] = [];
  for (let i = 0; i < blobsCount; i += 1) {
    const bytes = Buffer.from(`blob ${i}`);
    const digest = sha256Digest(bytes);
    await results.write(digest, bytes);
    digests.push(digest);
  }
  const blobs: BlobStore = {
    missing: (wanted) => results.missing(wanted),
    read: (digest, range) => results.read(digest, range),
    async write(digest, source) {
      for await (const _part of verified(digest, source));
      archived.add(digest);
    },
    pin: async (wanted, forMs) =>
      archived.has(wanted[0] ?? "") ? { digests: wanted, pinnedForMs: forMs } : results.pin(wanted, forMs),
  };
  return { blobs, digests };
}
