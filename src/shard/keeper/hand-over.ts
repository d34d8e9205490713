/** Hands shards to other nodes: one for balance, or all of them when this node leaves. */
import type { ShardId } from "#base/ids.ts";
import type { NodeId } from "#journal/journal.ts";
import type { Holdings } from "./holdings.ts";
import { inParallel } from "./lanes.ts";
import type { KeeperPorts } from "./ports.ts";
import { nextMove, successors } from "./share.ts";
import type { ClusterView } from "./view.ts";

export type HandOverPorts = Pick<KeeperPorts, "clock" | "settings" | "host" | "send" | "report"> & {
  readonly holdings: Holdings;
  readonly view: ClusterView;
  /** False when the node is about to leave. */
  readonly isUp: () => boolean;
  /** A shard was moved for balance: there may be another to move. */
  readonly moved: () => void;
};

/** While one shard arrives, the successor reads the next one's log. A node refuses to read many logs at once. */
const toOneHeirMax = 2;

export class HandOvers {
  readonly #ports: HandOverPorts;
  /** Shards that were handed over, and until when they are reserved for their successors. */
  readonly #keptUntilMono = new Map<ShardId, number>();
  #movedMono = Number.NEGATIVE_INFINITY;
  #isMoving = false;
  #handing: Promise<void> | undefined;

  constructor(ports: HandOverPorts) {
    this.#ports = ports;
  }

  /** The shards still reserved for their successors. */
  kept(): ReadonlyMap<ShardId, number> {
    const mono = this.#ports.clock.monotonicMs();
    for (const [shard, untilMono] of this.#keptUntilMono) if (untilMono < mono) this.#keptUntilMono.delete(shard);
    return this.#keptUntilMono;
  }

  /** Hands over every shard that another node can take, evenly. Concurrent calls share one run. */
  handAll(): Promise<void> {
    return (this.#handing ??= this.#handToHeirs().finally(() => (this.#handing = undefined)));
  }

  async #handToHeirs(): Promise<void> {
    const { holdings, view } = this.#ports;
    const heirs = successors(view.standing(new Set(holdings.all.keys())));
    const shards = [...holdings.all.keys()];
    const hand = heirs.map((heir, n) => {
      const its = shards.filter((_, i) => i % heirs.length === n);
      return inParallel(toOneHeirMax, its, (shard) => this.handOver(shard, heir));
    });
    await Promise.all(hand);
  }

  /** Moves one shard to a node that should have it. True: a shard should move, but the last move was too recent. */
  moveOne(): boolean {
    const { clock, settings, holdings, view, isUp, moved, report } = this.#ports;
    const serving = [...holdings.all.values()].filter(({ phase }) => phase === "serving").map(({ shard }) => shard);
    const move = nextMove(view.standing(new Set(holdings.all.keys())), serving);
    if (!move || !isUp() || this.#isMoving) return false;
    const { shard, to: successor } = move;
    if (clock.monotonicMs() - this.#movedMono < settings.moveEveryMs) return true;
    this.#movedMono = clock.monotonicMs();
    this.#isMoving = true;
    // Not awaited: a successor that hangs must not keep this node from taking free shards.
    this.handOver(shard, successor)
      .then((isMoved) => {
        if (isMoved) moved();
      })
      .catch((error: unknown) => report(`move shard ${shard}`, error))
      .finally(() => (this.#isMoving = false));
    return false;
  }

  /** To the named node, or just releases it. True when the shard was released. */
  async handOver(shard: ShardId, successor: NodeId | undefined): Promise<boolean> {
    const { clock, host, settings, holdings, view, isUp } = this.#ports;
    const holding = holdings.all.get(shard);
    if (holding?.phase !== "serving") return false;
    const address = view.addressOf(successor);
    // The successor reads the log while the shard is still served here, so that the gap is short.
    const isReady = address === undefined || (await this.#ask(address, shard, "prepare", settings.prepareMs));
    if (!isReady && isUp()) return false;
    if (!holdings.stands(holding) || holding.phase !== "serving") return false;
    holding.phase = "leaving";
    if (address !== undefined) view.send(shard, address);
    await host.drain(shard);
    const heir = successor === undefined || !isReady ? undefined : { node: successor, reservedMs: settings.reservedMs };
    if (heir) this.#keptUntilMono.set(shard, clock.monotonicMs() + heir.reservedMs);
    await holdings.giveUp(holding, heir, address);
    // Awaited: until the shard is served there, this node redirects its callers.
    if (heir && address !== undefined) await this.#ask(address, shard, "now", heir.reservedMs);
    return true;
  }

  async #ask(address: string, shard: ShardId, when: "prepare" | "now", timeoutMs: number): Promise<boolean> {
    const { send, report } = this.#ports;
    if (!send) return true;
    try {
      return (await send(address, { kind: "take", shard, when }, timeoutMs)).kind === "reply";
    } catch (error) {
      report(`ask ${address} to take shard ${shard}`, error);
      return false;
    }
  }
}
