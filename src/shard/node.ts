/** One node of the owner's side, composed: the program and the simulator both run it. */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import type { BlobStore } from "#blobs/store.ts";
import { defaultLimits, type Limits } from "#kernel/model/limits.ts";
import type { Memory } from "#kernel/memory/memory.ts";
import type { Cluster, Journal, NodeId } from "#journal/journal.ts";
import { Archiver, defaultArchiverSettings, type ArchiverSettings } from "./history/archiver.ts";
import { defaultRetentionSettings, HistoryRetention, type RetentionSettings } from "./history/retention.ts";
import { ShardHost } from "./host/host.ts";
import type { ShardObserver } from "./host/observer.ts";
import type { PinsOf } from "./host/prepare.ts";
import type { HostSettings } from "./host/settings.ts";
import { StoreClocks } from "./host/kernel-clock.ts";
import { Keeper } from "./keeper/keeper.ts";
import { Replay } from "./keeper/replay.ts";
import { Turns } from "./keeper/turns.ts";
import { featuresHere, textReferences } from "./features.ts";
import { LargeTexts } from "./texts/large-texts.ts";
import { keeperSettings, type KeeperSettings } from "./keeper/settings.ts";
import { shardStatuses, type NodeStatus } from "./node-status.ts";
import { Notices } from "./outbox/notices.ts";
import { defaultOutboxSettings, Outbox, type OutboxSettings, type Publisher } from "./outbox/outbox.ts";
import { defaultProjectorSettings, Projector, type ProjectorSettings } from "./history/projector.ts";
import type { ShardRequest, ShardResponse, ShardService, WatchMessage, WatchRequest } from "./transport/protocol.ts";
import { defaultBrokerSettings, QuotaBroker, type BrokerSettings } from "./quota/quota-broker.ts";
import { defaultSnapshotSettings, Snapshotter, type SnapshotSettings } from "./history/snapshotter.ts";
import { ReadyDesk } from "./watch/ready-desk.ts";
import type { Address, Listening, Transport } from "./transport/transport.ts";
import { ManifestDesk, type ManifestDeskPorts } from "./manifest/desk.ts";

export type NodeOptions = {
  readonly id: NodeId;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly blobs: BlobStore;
  /** Where to look for and pin blobs that results name, by tenant. Left out: in `blobs`, for every tenant. */
  readonly pins?: PinsOf;
  readonly random: Random;
  /** Served by `start` and used to reach other nodes; left out for a single node. */
  readonly transport?: Transport;
  /** Settings for a new journal store. */
  readonly cluster?: { readonly shards: number; readonly clusterId: string };
  /** The limits of each shard, given the cluster's number of shards. */
  readonly limits?: (cluster: Cluster) => Limits;
  readonly keeper?: Partial<KeeperSettings>;
  /** Shards that are to have a node of their own, and which. */
  readonly isolated?: () => ReadonlyMap<ShardId, NodeId>;
  readonly host?: Partial<HostSettings>;
  /** Memory limit shared by all shards of the node; left out, each shard has its own. */
  readonly memory?: Memory;
  /** Longer specs and signals are kept in the store. */
  readonly inlineLengthMax?: number;
  readonly projector?: Partial<ProjectorSettings>;
  readonly retention?: Partial<RetentionSettings>;
  readonly snapshots?: Partial<SnapshotSettings>;
  readonly archiver?: Partial<ArchiverSettings>;
  readonly broker?: Partial<BrokerSettings>;
  readonly outbox?: Partial<OutboxSettings>;
  /** Publishes results that ask for it; left out, nothing is published. */
  readonly publisher?: Publisher;
  /** More observers of the shards here, such as metrics. */
  readonly observers?: readonly ShardObserver[];
  /** The newest feature level that this program can read and write. */
  readonly features?: number;
  readonly facts?: () => Readonly<Record<string, string | number>>;
  /** Called with every failure that was handled: for the log. */
  readonly report?: (doing: string, error: unknown) => void;
};

const askMs = 5_000;
const inlineLengthMaxDefault = 8 * 1024;

const isShard = (shard: ShardId, shards: number): boolean => Number.isInteger(shard) && shard >= 0 && shard < shards;

/** No owner will ever answer differently. */
const noSuchShard: ShardResponse = {
  kind: "rejected",
  stamp: { epoch: 0, seq: 0 },
  rejection: { kind: "invalid", path: "shard", why: "there is no such shard" },
};

export const createNode = (options: NodeOptions): Node => new Node(options);

export class Node implements ShardService {
  readonly id: NodeId;
  readonly host: ShardHost;
  readonly keeper: Keeper;
  /** Where workers of any node hear of work in this node's shards. */
  readonly ready: ReadyDesk;
  readonly #options: NodeOptions;
  readonly #texts: LargeTexts;
  readonly #report: (doing: string, error: unknown) => void;
  readonly #storeClocks: StoreClocks;
  readonly #projection: ProjectorSettings;
  readonly #projector: Projector;
  readonly #retention: HistoryRetention;
  readonly #archiver: Archiver;
  readonly #snapshotter: Snapshotter;
  readonly #outbox: Outbox;
  readonly #notices: Notices;
  readonly #manifests: ManifestDesk;
  readonly #broker: QuotaBroker;
  #cluster: Cluster | undefined;
  #listening: Listening | undefined;
  #state: NodeStatus["state"] = "new";

  constructor(options: NodeOptions) {
    this.id = options.id;
    this.#options = options;
    const { blobs, inlineLengthMax = inlineLengthMaxDefault } = options;
    const isOn = (): boolean => this.#featureLevel >= textReferences;
    this.#texts = new LargeTexts({ blobs, inlineLengthMax, isOn, lengthMax: defaultLimits.specBytesMax });
    this.#report = options.report ?? (() => {});
    this.#storeClocks = new StoreClocks(options.clock, options.journal.partition);
    this.#projection = { ...defaultProjectorSettings, ...options.projector };
    const { clock, journal } = options;
    this.#projector = new Projector({
      clock,
      journal,
      settings: this.#projection,
      forget: (shard, jobs) => this.host.internal(shard, { kind: "forget", jobs }),
      report: this.#report,
    });
    this.#retention = this.#makeRetention();
    this.#archiver = this.#makeArchiver();
    this.#snapshotter = this.#makeSnapshotter();
    this.#outbox = this.#makeOutbox();
    this.#notices = new Notices({
      clock,
      signal: (shard, command) => this.#ask({ kind: "command", shard, command }),
      notified: (shard, command) => this.host.internal(shard, command),
      report: this.#report,
    });
    const record: ManifestDeskPorts["record"] = (shard, command) => this.host.internal(shard, command);
    this.#manifests = new ManifestDesk({ clock, blobs, record, report: this.#report });
    this.ready = new ReadyDesk({ clock, shards: () => this.host.shards.values() });
    this.host = this.#makeHost();
    this.keeper = this.#makeKeeper();
    this.#broker = new QuotaBroker({
      clock,
      settings: { ...defaultBrokerSettings, ...options.broker },
      shards: () => this.host.shards.values(),
      ask: (shard, command) => this.#ask({ kind: "command", shard, command }),
      give: (shard, command) => this.host.internal(shard, command),
      report: this.#report,
    });
  }

  /** Where other nodes reach this one; empty before it listens. */
  get address(): Address {
    return this.#listening?.address ?? "";
  }

  get state(): NodeStatus["state"] {
    return this.#state;
  }

  get cluster(): Cluster {
    if (!this.#cluster) throw new Fault("unavailable", "read cluster", { why: "the node has not been started" });
    return this.#cluster;
  }

  /** Opens the journal, once; `start` does it if the caller did not. */
  async open(): Promise<Cluster> {
    const { journal, cluster } = this.#options;
    return (this.#cluster ??= cluster ? await journal.open(cluster) : await journal.cluster());
  }

  async start(): Promise<void> {
    await this.open();
    this.#listening = await this.#options.transport?.listen(this);
    this.#state = "up";
    this.host.start();
    this.#projector.start();
    this.#retention.start();
    this.#broker.start();
    this.keeper.start();
  }

  /** Hands over its shards in order. The journal, the store and the transport stay open: they belong to the caller. */
  async stop(): Promise<void> {
    if (this.#state !== "up" && this.#state !== "leaving") return;
    this.#state = "leaving";
    await this.keeper.stop();
    this.kill();
    await this.#listening?.close();
  }

  /**
   * Hands over what other nodes can take and takes nothing, until `resume` or `stop`. It answers requests as before.
   */
  async leave(): Promise<void> {
    if (this.#state !== "up") return;
    this.#state = "leaving";
    await this.keeper.leave();
  }

  async resume(): Promise<void> {
    if (this.#state !== "leaving") return;
    this.#state = "up";
    await this.keeper.resume();
  }

  /** Stops everything at once without an answer, as a crash would. */
  kill(): void {
    this.#state = "ended";
    this.keeper.kill();
    this.host.kill();
    this.#projector.kill();
    this.#retention.kill();
    this.#snapshotter.kill();
    this.#archiver.kill();
    this.#outbox.kill();
    this.#notices.kill();
    this.#manifests.kill();
    this.#broker.kill();
    this.ready.stop();
  }

  /** Not `async`: nearly every request goes straight to the host, and a second promise would double its cost. */
  request(request: ShardRequest, signal?: AbortSignal): Promise<ShardResponse> {
    const { shard } = request;
    if (this.#cluster && !isShard(shard, this.#cluster.shards)) return Promise.resolve(noSuchShard);
    if (request.kind === "take") return this.keeper.take(request);
    if (!this.keeper.isComing(shard)) return this.host.request(request, signal);
    return this.keeper.arrival(shard).then(() => this.host.request(request, signal));
  }

  watch(request: WatchRequest, signal: AbortSignal): AsyncIterable<WatchMessage> {
    return this.host.watch(request, signal);
  }

  handOver(shard: ShardId, successor: NodeId): Promise<boolean> {
    return this.keeper.handOver(shard, successor);
  }

  status(): NodeStatus {
    const shards = shardStatuses(this.keeper, this.host, this.#options.clock, (shard) => ({
      history: this.#projector.lag(shard),
      snapshotSeq: this.#snapshotter.snapshotSeq(shard),
    }));
    const { bytes, bytesMax } = this.#options.memory ?? { bytes: 0, bytesMax: 0 };
    const memory = { workBytes: bytes, workBytesMax: bytesMax };
    return { node: this.id, address: this.address, state: this.#state, memory, shards };
  }

  #makeRetention(): HistoryRetention {
    const { clock, journal, retention: settings } = this.#options;
    return new HistoryRetention({
      clock,
      journal,
      settings: { ...defaultRetentionSettings, ...settings },
      storeNowMs: () => this.#storeClocks.of(0).nowMs(),
      shards: () => [...this.host.shards.values()].filter(({ phase }) => phase === "serving").map(({ shard }) => shard),
      report: this.#report,
    });
  }

  #makeArchiver(): Archiver {
    const { clock, journal, blobs, archiver: settings } = this.#options;
    return new Archiver({
      clock,
      journal,
      blobs,
      settings: { ...defaultArchiverSettings, ...settings },
      isOurs: (shard, epoch) => this.host.shards.get(shard)?.epoch === epoch,
      reachedMs: (shard) => this.host.shards.get(shard)?.state.nowMs ?? 0,
      report: this.#report,
    });
  }

  #makeSnapshotter(): Snapshotter {
    const { clock, journal, snapshots } = this.#options;
    return new Snapshotter({
      clock,
      journal,
      settings: { ...defaultSnapshotSettings, ...snapshots },
      projected: (shard, seq) => this.#projector.reached(shard, seq),
      saved: ({ shard, epoch }, seq) => this.#archiver.tidy(shard, epoch, seq),
      report: this.#report,
    });
  }

  #makeOutbox(): Outbox {
    const { clock, outbox: settings, publisher = async () => "done" } = this.#options;
    return new Outbox({
      clock,
      settings: { ...defaultOutboxSettings, ...settings },
      publisher,
      texts: this.#texts,
      published: (shard, command) => this.host.internal(shard, command),
      report: this.#report,
    });
  }

  /** The text itself, for one that is kept in the store. */
  readText(text: string): Promise<string> {
    return this.#texts.read(text);
  }

  /** What every member of the cluster can read, as far as this node knows. */
  get #featureLevel(): number {
    return Math.max(this.#cluster?.featureLevel ?? 0, this.keeper.featureLevel);
  }

  #makeHost(): ShardHost {
    const { id: node, clock, journal, blobs, pins = () => blobs, host: settings = {}, observers = [] } = this.#options;
    return new ShardHost({
      node,
      clock,
      storeClocks: this.#storeClocks,
      journal,
      pins,
      settings,
      memory: this.#options.memory,
      texts: this.#texts,
      featureLevel: () => this.#featureLevel,
      observers: [this.#projector, this.#snapshotter, this.#outbox, this.#notices, this.#manifests, ...observers],
      hintOf: (shard) => this.keeper.hintOf(shard),
      isLoading: (shard) => this.keeper.held.get(shard)?.phase === "loading",
      lost: (shard, epoch, why) => this.keeper.lost(shard, epoch, why),
      unclaimed: (shard, work) => this.ready.unclaimed(shard, work),
      report: this.#report,
    });
  }

  #makeKeeper(): Keeper {
    const { id: node, clock, journal, random, features = featuresHere, facts, transport } = this.#options;
    const keepsHistory = this.#projection.history;
    const turns = new Turns(clock);
    return new Keeper({
      node,
      clock,
      storeClocks: this.#storeClocks,
      journal,
      random,
      settings: keeperSettings(this.#options.keeper),
      row: () => ({ node, address: this.address, features, facts: facts?.() ?? {} }),
      host: {
        adopt: (hosting, replay) => {
          this.#projector.prime(replay);
          this.#snapshotter.prime(replay);
          return this.host.adopt({ ...hosting, keepsHistory }, replay.recent);
        },
        drain: (shard) => this.host.drain(shard),
        drop: (shard, why, hint) => this.host.drop(shard, why, hint),
      },
      replay: (shard) => {
        const limits = this.#options.limits?.(this.cluster) ?? defaultLimits;
        const texts = this.#texts;
        return Replay.begin({ turns, journal, limits, keepsHistory, texts, report: this.#report }, shard);
      },
      turns,
      isolated: this.#options.isolated,
      send: transport && ((to, request, timeoutMs) => this.#send(transport, to, request, timeoutMs)),
      report: this.#report,
    });
  }

  /** One try, at the believed owner: for requests that are repeated anyway. */
  async #ask(request: ShardRequest): Promise<ShardResponse> {
    const { transport } = this.#options;
    const to = this.host.shards.has(request.shard) ? undefined : this.keeper.hintOf(request.shard);
    if (to === undefined || !transport) return this.host.request(request);
    return this.#send(transport, to, request, askMs);
  }

  async #send(transport: Transport, to: Address, request: ShardRequest, timeoutMs: number): Promise<ShardResponse> {
    const controller = new AbortController();
    const cancel = this.#options.clock.after(timeoutMs, () =>
      controller.abort(new Fault("unknown-outcome", "request", { to, timeoutMs })),
    );
    try {
      return await transport.request(to, request, controller.signal);
    } finally {
      cancel();
    }
  }
}
