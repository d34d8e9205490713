/** What the node knows of the cluster from its last look at the journal's tables. */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { NodeId, NodeSeen, Ownership } from "#journal/journal.ts";
import type { KeeperPorts } from "./ports.ts";
import type { KeeperJournal } from "./timeouts.ts";
import type { Standing } from "./share.ts";

const raiseEvery = 8;
const raiseMsMax = 500;

type ViewPorts = Pick<KeeperPorts, "journal" | "node" | "clock" | "report" | "isolated">;

export class ClusterView {
  readonly #isolated: KeeperPorts["isolated"];
  readonly #journal: KeeperJournal;
  readonly #node: NodeId;
  readonly #clock: Clock;
  readonly #report: (doing: string, error: unknown) => void;
  /** Where shards without a known owner were handed to. */
  readonly #sent = new Map<ShardId, string>();
  /** In how many rounds in a row a shard was found free. */
  readonly #freeLooks = new Map<ShardId, number>();
  #owners: ReadonlyMap<ShardId, Ownership> = new Map();
  #nodes: readonly NodeSeen[] = [];
  #looks = 0;
  #featureLevel = 0;
  #lookedMono: number | undefined;

  constructor({ journal, node, clock, report, isolated }: ViewPorts) {
    this.#isolated = isolated;
    this.#journal = journal;
    this.#clock = clock;
    this.#node = node;
    this.#report = report;
  }

  async look(): Promise<void> {
    const isFirst = this.#looks === 0;
    const raised = this.#looks % raiseEvery === 0 ? this.#raise() : undefined;
    // Only the first time is awaited, so that the level applies to what the node reads back, and only briefly: another
    // node may hang while it holds the lock on the cluster's row.
    if (isFirst && raised) await this.#briefly(raised);
    this.#looks += 1;
    this.#nodes = await this.#journal.nodes();
    this.#owners = new Map((await this.#journal.ownerships()).map((row) => [row.shard, row]));
    for (const { shard, owner } of this.#owners.values()) if (owner !== undefined) this.#sent.delete(shard);
    for (const { shard, owner, remainingMs, unseen } of this.#owners.values())
      if (unseen) this.#freeLooks.delete(shard);
      else if (owner === undefined || remainingMs <= 0)
        this.#freeLooks.set(shard, (this.#freeLooks.get(shard) ?? 0) + 1);
      else this.#freeLooks.delete(shard);
    this.#lookedMono = this.#clock.monotonicMs();
  }

  async #raise(): Promise<void> {
    try {
      this.#featureLevel = await this.#journal.raiseFeatureLevel();
    } catch (error) {
      this.#report("raise the feature level", error);
    }
  }

  async #briefly(raised: Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(raiseMsMax, resolve);
    await Promise.race([raised, promise]);
    cancel();
  }

  /** The level that every member can read, as far as this node knows; it never falls. */
  get featureLevel(): number {
    return this.#featureLevel;
  }

  /** When the journal last answered; undefined before the first answer. */
  get lookedMono(): number | undefined {
    return this.#lookedMono;
  }

  standing(held: ReadonlySet<ShardId>): Standing {
    const ownerships = [...this.#owners.values()];
    const standing = { node: this.#node, held, ownerships, nodes: this.#nodes, freeLooks: this.#freeLooks };
    const isolated = this.#isolated?.();
    return isolated ? { ...standing, isolated } : standing;
  }

  get nodes(): readonly NodeSeen[] {
    return this.#nodes;
  }

  /** How long until the first lease of another node expires, unless it is renewed. */
  get soonestEndMs(): number {
    let soonest = Number.POSITIVE_INFINITY;
    for (const { owner, remainingMs, unseen } of this.#owners.values())
      if (!unseen && owner !== undefined && owner !== this.#node && remainingMs > 0)
        soonest = Math.min(soonest, remainingMs);
    return soonest;
  }

  isAnothers(shard: ShardId): boolean {
    const { owner, remainingMs, unseen } = this.#owners.get(shard) ?? {};
    return !unseen && owner !== undefined && owner !== this.#node && (remainingMs ?? 0) > 0;
  }

  addressOf(node: NodeId | undefined): string | undefined {
    return this.#nodes.find((row) => row.node === node)?.address || undefined;
  }

  send(shard: ShardId, address: string): void {
    this.#sent.set(shard, address);
  }

  hintOf(shard: ShardId): string | undefined {
    const { owner, address } = this.#owners.get(shard) ?? {};
    return this.#sent.get(shard) ?? (owner === this.#node ? undefined : address || undefined);
  }
}
