/**
 * Fetches running quota for tenants whose home is another shard: slots are lent for a while, asked for again before
 * the while is over, and count at the borrower shorter than at the lender, so that no slot is ever used twice.
 */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { CommandOf } from "#kernel/command.ts";
import type { Tenant } from "#kernel/entities.ts";
import type { Replies } from "#kernel/reply.ts";
import type { HostedShard } from "./host-shard.ts";
import { inParallel } from "./keeper-lanes.ts";
import type { ShardResponse } from "./protocol.ts";

export type BrokerSettings = {
  readonly everyMs: number;
  readonly sliceMs: number;
  /** The share of a slice that the borrower does not count on: clocks run at slightly different rates. */
  readonly driftShare: number;
  readonly atOnceMax: number;
};

export const defaultBrokerSettings: BrokerSettings = {
  everyMs: 1_000,
  sliceMs: 30_000,
  driftShare: 0.05,
  atOnceMax: 8,
};

export type BrokerPorts = {
  readonly clock: Clock;
  readonly settings: BrokerSettings;
  readonly shards: () => Iterable<HostedShard>;
  /** Asks the owner of another shard, wherever it is. */
  readonly ask: (shard: ShardId, command: CommandOf<"lend-quota">) => Promise<ShardResponse>;
  readonly give: (shard: ShardId, command: CommandOf<"take-quota">) => Promise<unknown>;
  readonly report: (doing: string, error: unknown) => void;
};

export class QuotaBroker {
  readonly #ports: BrokerPorts;
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
    const wants: { readonly shard: HostedShard; readonly tenant: Tenant }[] = [];
    for (const shard of this.#ports.shards()) {
      if (shard.phase !== "serving") continue;
      for (const tenant of shard.state.tenants.values()) if (this.#isDue(shard, tenant)) wants.push({ shard, tenant });
    }
    await inParallel(this.#ports.settings.atOnceMax, wants, async ({ shard, tenant }) => {
      try {
        await this.#fetch(shard, tenant);
      } catch (error) {
        if (!this.#stopped) this.#ports.report(`fetch quota of ${tenant.name} for shard ${shard.shard}`, error);
      }
    });
    this.#busy = false;
  }

  #isDue({ shard, state }: HostedShard, tenant: Tenant): boolean {
    if (tenant.runningMax === 0 || tenant.home === shard) return false;
    const want = wantOf(tenant);
    if (want === 0) return false;
    const { slots, untilMs } = tenant.slice;
    return slots < want || untilMs - state.nowMs < this.#ports.settings.sliceMs / 2;
  }

  async #fetch(shard: HostedShard, tenant: Tenant): Promise<void> {
    const { clock, settings, ask, give } = this.#ports;
    const { name, running } = tenant;
    const sentMono = clock.monotonicMs();
    const response = await ask(tenant.home, {
      kind: "lend-quota",
      tenant: name,
      borrower: shard.shard,
      want: wantOf(tenant),
      running,
      forMs: settings.sliceMs,
    });
    if (this.#stopped || shard.phase !== "serving" || response.kind !== "reply") return;
    const { slots, forMs } = response.reply as Replies["lend-quota"];
    // Counted from before it was asked for: at the lender the slice began later than that. And shorter by two rounds:
    // a claim that was granted at the very end is told to the lender before it lends the slot to another.
    const passedMs = clock.monotonicMs() - sentMono;
    const leftMs = Math.floor(forMs * (1 - settings.driftShare) - passedMs - 2 * settings.everyMs);
    const isNews = slots !== tenant.slice.slots || leftMs > tenant.slice.untilMs - shard.state.nowMs;
    if (leftMs > 0 && isNews) await give(shard.shard, { kind: "take-quota", tenant: name, slots, forMs: leftMs });
  }
}

const wantOf = ({ running, ready, runningMax }: Tenant): number => Math.min(runningMax, running + ready);
