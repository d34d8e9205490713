/**
 * Borrows running quota for tenants whose home is another shard, and returns it. Slots are lent for a while, and
 * requested again before that ends; they expire at the borrower earlier than at the lender, so that no slot is used
 * twice. Slots that were not needed for two rounds go back at once: the borrower asks for fewer, takes the smaller
 * slice, and when that is durable tells the lender which slice it uses. Only then does the lender lend them again.
 */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { CommandOf } from "#kernel/model/command.ts";
import type { Tenant } from "#kernel/model/entities.ts";
import type { Replies } from "#kernel/model/reply.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import { inParallel } from "#shard/keeper/lanes.ts";
import type { ShardResponse } from "#shard/transport/protocol.ts";

export type BrokerSettings = {
  readonly everyMs: number;
  readonly sliceMs: number;
  /** The share of a slice that the borrower does not use: clocks run at slightly different rates. */
  readonly driftShare: number;
  readonly atOnceMax: number;
};

export const defaultBrokerSettings: BrokerSettings = {
  everyMs: 500,
  sliceMs: 30_000,
  driftShare: 0.05,
  atOnceMax: 8,
};

/** A claim granted at the very end of a slice is reported to the lender before it lends the slot to another shard. */
const roundsToTell = 4;
/** Per round: ask for fewer, confirm that the slice was taken, and once more if even fewer are needed. */
const asksMax = 3;

export type BrokerPorts = {
  readonly clock: Clock;
  readonly settings: BrokerSettings;
  readonly shards: () => Iterable<HostedShard>;
  /** Asks the owner of another shard, wherever it is. */
  readonly ask: (shard: ShardId, command: CommandOf<"lend-quota">) => Promise<ShardResponse>;
  /** Resolves when it is durable. */
  readonly give: (shard: ShardId, command: CommandOf<"take-quota">) => Promise<unknown>;
  readonly report: (doing: string, error: unknown) => void;
};

/** What is remembered of a tenant in a shard that borrows for it. */
type Borrower = {
  readonly shard: HostedShard;
  readonly tenant: Tenant;
  /** What it wanted in the previous round, and its turn then, which every grant changes. */
  wanted: number;
  turn: number;
  /** The most that it needed in this round and the previous one. */
  need: number;
  /** The slice that it took last; undefined for one without a number. */
  holds: number | undefined;
  /** It took a smaller slice than before, and the lender does not know yet. */
  hasFewer: boolean;
};

export class QuotaBroker {
  readonly #ports: BrokerPorts;
  /** Keyed by the hosted shard, not by its number: another owner may have changed things in between. */
  readonly #borrowers = new WeakMap<HostedShard, Map<string, Borrower>>();
  #cancel: (() => void) | undefined;
  #stopped = false;
  #busy = false;

  constructor(ports: BrokerPorts) {
    this.#ports = ports;
  }

  start(): void {
    if (this.#stopped) return;
    this.#cancel = this.#ports.clock.after(this.#ports.settings.everyMs, () => {
      if (!this.#busy) void this.#round();
      this.start();
    });
  }

  kill(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  async #round(): Promise<void> {
    this.#busy = true;
    const due: Borrower[] = [];
    for (const shard of this.#ports.shards()) {
      if (shard.phase !== "serving") continue;
      for (const tenant of shard.state.tenants.values()) {
        if (tenant.runningMax === 0 || tenant.home === shard.shard) continue;
        const borrower = this.#look(shard, tenant);
        if (this.#isDue(borrower)) due.push(borrower);
      }
    }
    await inParallel(this.#ports.settings.atOnceMax, due, async (borrower) => {
      try {
        await this.#visit(borrower);
      } catch (error) {
        const { shard, tenant } = borrower;
        if (!this.#stopped) this.#ports.report(`fetch quota of ${tenant.name} for shard ${shard.shard}`, error);
      }
    });
    this.#busy = false;
  }

  #look(shard: HostedShard, tenant: Tenant): Borrower {
    const all = this.#borrowers.get(shard) ?? new Map<string, Borrower>();
    this.#borrowers.set(shard, all);
    const want = wantOf(tenant);
    const known = all.get(tenant.name);
    if (known?.tenant === tenant) {
      // One slot stays where work comes and goes between two rounds: otherwise each task would wait for a slot again.
      known.need = Math.max(want, known.wanted, tenant.virtual === known.turn ? 0 : 1);
      known.wanted = want;
      known.turn = tenant.virtual;
      return known;
    }
    const need = Math.max(want, tenant.slice.slots);
    const fresh = { shard, tenant, wanted: want, turn: tenant.virtual, need, holds: undefined, hasFewer: false };
    all.set(tenant.name, fresh);
    return fresh;
  }

  #isDue({ shard, tenant, wanted, need, hasFewer }: Borrower): boolean {
    const { slots, untilMs } = tenant.slice;
    const leftMs = untilMs - shard.state.nowMs;
    if (hasFewer || (slots > need && leftMs > 0)) return true;
    return wanted > 0 && (slots < wanted || leftMs < this.#ports.settings.sliceMs / 2);
  }

  async #visit(borrower: Borrower): Promise<void> {
    for (let asks = 0; asks < asksMax; asks += 1) {
      await this.#ask(borrower);
      if (!borrower.hasFewer || this.#isOver(borrower)) return;
    }
  }

  async #ask(borrower: Borrower): Promise<void> {
    const { clock, settings, ask, give } = this.#ports;
    const { shard, tenant, need, holds } = borrower;
    const { name: tenantName, running } = tenant;
    const sentMono = clock.monotonicMs();
    const response = await ask(tenant.home, {
      kind: "lend-quota",
      tenant: tenantName,
      borrower: shard.shard,
      want: need,
      running,
      forMs: settings.sliceMs,
      holds,
    });
    if (this.#isOver(borrower) || response.kind !== "reply") return;
    borrower.hasFewer = false;
    const { slots, forMs, slice } = response.reply as Replies["lend-quota"];
    // Counted from before it was requested: at the lender the slice began later than that.
    const passedMs = clock.monotonicMs() - sentMono;
    const leftMs = Math.floor(forMs * (1 - settings.driftShare) - passedMs - roundsToTell * settings.everyMs);
    const nowLeftMs = tenant.slice.untilMs - shard.state.nowMs;
    const isFewer = nowLeftMs > 0 && slots < tenant.slice.slots;
    if (!isFewer && (leftMs <= 0 || (slots === tenant.slice.slots && leftMs <= nowLeftMs))) return;
    await give(shard.shard, { kind: "take-quota", tenant: tenantName, slots, forMs: Math.max(1, leftMs) });
    borrower.holds = slice;
    borrower.hasFewer = isFewer && slice !== undefined;
  }

  #isOver({ shard }: Borrower): boolean {
    return this.#stopped || shard.phase !== "serving";
  }
}

const wantOf = ({ running, ready, runningMax }: Tenant): number => Math.min(runningMax, running + ready);
