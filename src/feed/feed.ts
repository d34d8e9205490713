/** The event feed of a cluster, as one node serves it: readers of all shards, limited per tenant. */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Journal } from "#journal/journal.ts";
import type { Limits } from "#kernel/model/limits.ts";
import type { Node } from "#shard/node.ts";
import type { FeedAnswer, FeedDesk, FeedQuestion } from "./desk.ts";
import type { FeedFilter } from "./filter.ts";
import { FeedHub, type HubSettings } from "./hub.ts";
import { FeedReader, type FeedStart, type ReaderPorts } from "./reader.ts";
import { ReplayedFeed, type ReplayedPorts } from "./replayed.ts";

export type FeedPorts = {
  readonly clock: Clock;
  readonly node: Pick<Node, "keeper" | "cluster">;
  /** Observes the shards of this node. */
  readonly desk: FeedDesk;
  readonly journal: Journal;
  readonly blobs: BlobStore;
  readonly limits: () => Limits;
  /** Asks the desk of another node. */
  readonly ask: (address: string, question: FeedQuestion, signal: AbortSignal) => Promise<readonly FeedAnswer[]>;
  readonly report: (doing: string, error: unknown) => void;
  readonly settings?: Partial<FeedSettings>;
};

export type FeedSettings = {
  readonly readersMax: number;
  readonly hub: Partial<HubSettings>;
  readonly replayed: NonNullable<ReplayedPorts["settings"]>;
};

const readersMaxDefault = 2_000;

export type FeedStatus = {
  readonly readers: number;
  /** Of the reader that is furthest behind, in batches of the log. */
  readonly lagBatches: number;
  /** For how long the oldest item has waited for the reader that is furthest behind. */
  readonly lagMs: number;
  /** For how long the owner of some shard has said nothing although it was asked; 0 if all answer. */
  readonly silentMs: number;
  /** Reads of the log or the archive for readers that were behind. */
  readonly replays: number;
  /** Batches that these reads applied. */
  readonly replayedBatches: number;
  readonly delivered: number;
  readonly shed: number;
};

export class Feed {
  readonly #clock: Clock;
  readonly #readersMax: number;
  readonly #reading: ReaderPorts;
  readonly #hub: FeedHub;
  readonly #replayed: ReplayedFeed;
  readonly #open = new Map<FeedReader, string>();
  readonly counts = { delivered: 0, shed: 0 };

  constructor(ports: FeedPorts) {
    const { clock, node, desk, journal, blobs, limits, report, settings } = ports;
    this.#clock = clock;
    this.#readersMax = settings?.readersMax ?? readersMaxDefault;
    this.#replayed = new ReplayedFeed({
      clock,
      journal,
      blobs,
      limits,
      report,
      settings: settings?.replayed ?? {},
    });
    this.#hub = new FeedHub({
      clock,
      shards: () => node.cluster.shards,
      ownerOf: (shard) => (desk.serves(shard) ? "" : node.keeper.hintOf(shard)),
      ask: (owner, question, signal) =>
        owner === "" ? desk.ask(question, signal, Number.POSITIVE_INFINITY) : ports.ask(owner, question, signal),
      replayed: this.#replayed,
      tailOf: async (shard) => (await journal.tail(shard)).seq,
      report,
      settings: settings?.hub ?? {},
    });
    desk.onMove = () => this.#hub.look();
    this.#reading = { clock, hub: this.#hub, replayed: this.#replayed, cluster: () => node.cluster };
  }

  /** The caller disposes of the reader. A tenant may have at most as many as are left for all others. */
  async open(filter: FeedFilter, start: FeedStart, { isOurs = false } = {}): Promise<FeedReader> {
    const tenant = filter.tenant ?? "";
    const ofTenant = [...this.#open.values()].filter((name) => name === tenant).length;
    if (!isOurs && ofTenant >= this.#readersMax - this.#open.size)
      throw new Fault("exhausted", "read the event feed", {
        readers: ofTenant,
        why: "too many readers of this tenant",
      });
    const reader = await FeedReader.open(this.#reading, filter, start, () => this.#open.delete(reader));
    this.#open.set(reader, tenant);
    return reader;
  }

  status(): FeedStatus {
    const nowMs = this.#clock.wallMs();
    const most = (of: (reader: FeedReader) => number) =>
      [...this.#open.keys()].reduce((max, one) => Math.max(max, of(one)), 0);
    const lags = { lagBatches: most(({ lag }) => lag), lagMs: most((one) => one.lagMs(nowMs)) };
    const { reads: replays, batches: replayedBatches } = this.#replayed.counts;
    return {
      readers: this.#open.size,
      ...lags,
      silentMs: this.#hub.silentMs,
      replays,
      replayedBatches,
      ...this.counts,
    };
  }

  stop(): void {
    this.#hub.stop();
  }
}
