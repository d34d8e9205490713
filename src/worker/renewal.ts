/**
 * Renews claims: one message per shard for all claims in it, every third of the shortest lease. The answer lists
 * everything that the executor holds there, so it also reveals claims that were lost and claims that the worker does
 * not know.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { ExecutorClient, Held } from "#shard/client/executor.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { keyOf, type Holding } from "./holding.ts";

export type RenewalPorts = {
  readonly client: Pick<ExecutorClient, "renew" | "release" | "fail">;
  readonly clock: Clock;
  readonly executor: string;
  /** Whether a reservation of the shard is in progress: its claims are not known here yet. */
  readonly isReserving: (shard: ShardId) => boolean;
  readonly log: (line: string) => void;
};

export class Renewals {
  readonly #ports: RenewalPorts;
  readonly #byShard = new Map<ShardId, Map<string, Holding>>();
  readonly #running = new Set<ShardId>();
  /** Shards that wait for their next renewal. */
  readonly #naps = new Map<ShardId, { readonly untilMono: number; wake(): void }>();
  /** Claims in an answer that the worker does not know, with how often they were seen. */
  readonly #strangers = new Map<string, number>();
  readonly #signal: AbortSignal;

  constructor(ports: RenewalPorts, signal: AbortSignal) {
    this.#ports = ports;
    this.#signal = signal;
  }

  get holdings(): readonly Holding[] {
    return [...this.#byShard.values()].flatMap((shard) => [...shard.values()]);
  }

  add(holding: Holding): void {
    const { shard } = holding.granted;
    const known = this.#byShard.get(shard) ?? new Map<string, Holding>();
    known.set(holding.key, holding);
    this.#byShard.set(shard, known);
    const nap = this.#naps.get(shard);
    // A claim with a shorter lease than the others wakes the loop early.
    if (nap && this.#ports.clock.monotonicMs() + holding.granted.leaseMs / 3 < nap.untilMono) nap.wake();
    if (this.#running.has(shard)) return;
    this.#running.add(shard);
    void this.#keep(shard).finally(() => this.#running.delete(shard));
  }

  remove(holding: Holding): void {
    this.#byShard.get(holding.granted.shard)?.delete(holding.key);
    holding[Symbol.dispose]();
  }

  /** Asks the shard what it believes this executor to hold, and releases what the worker does not know. */
  async sync(shard: ShardId, options: { readonly deadlineMs: number }): Promise<void> {
    const { client, executor } = this.#ports;
    const { held } = await client.renew(shard, executor, this.#claims(shard), { ...options, signal: this.#signal });
    for (const claim of held) if (!this.#byShard.get(shard)?.has(keyOf(claim))) await this.#giveBack(shard, claim);
  }

  async #keep(shard: ShardId): Promise<void> {
    for (;;) {
      const holdings = this.#byShard.get(shard);
      if (!holdings || holdings.size === 0) return;
      const everyMs = Math.min(...[...holdings.values()].map(({ granted }) => granted.leaseMs)) / 3;
      const isTime = await this.#nap(shard, everyMs);
      if (this.#signal.aborted) return;
      if (isTime && holdings.size > 0) await this.#renew(shard, everyMs);
    }
  }

  /** False if it was woken early. */
  #nap(shard: ShardId, ms: number): Promise<boolean> {
    const { clock } = this.#ports;
    return new Promise((resolve) => {
      const end = (isTime: boolean): void => {
        cancel();
        this.#signal.removeEventListener("abort", wake);
        this.#naps.delete(shard);
        resolve(isTime);
      };
      const wake = (): void => end(false);
      const cancel = clock.after(ms, () => end(true));
      this.#signal.addEventListener("abort", wake, { once: true });
      this.#naps.set(shard, { untilMono: clock.monotonicMs() + ms, wake });
    });
  }

  async #renew(shard: ShardId, everyMs: number): Promise<void> {
    const { client, clock, executor, log } = this.#ports;
    const sentAtMs = clock.monotonicMs();
    try {
      // Retries until the next renewal is due; then a fresh one takes its place.
      const options = { deadlineMs: Math.max(everyMs, 200), signal: this.#signal };
      const { held, lost } = await client.renew(shard, executor, this.#claims(shard), options);
      const known = this.#byShard.get(shard);
      for (const claim of lost) known?.get(keyOf(claim))?.stop("lost");
      const strangers = new Set<string>();
      for (const claim of held) {
        const holding = known?.get(keyOf(claim));
        holding?.renewed(sentAtMs, claim.leaseMs);
        if (claim.signals) holding?.hear(claim.signals);
        if (holding && claim.cancelling) holding.stop("cancelled");
        if (!holding) strangers.add(await this.#meet(shard, claim));
      }
      for (const key of this.#strangers.keys())
        if (key.startsWith(`${shard} `) && !strangers.has(key)) this.#strangers.delete(key);
    } catch (error) {
      if (this.#signal.aborted) return;
      if (!isFault(error) && !isRejected(error)) throw error;
      log(`renew: ${error.message}`);
    }
  }

  /** A reservation's answer or a report may be on its way, so a claim is released only when seen twice. */
  async #meet(shard: ShardId, claim: Held): Promise<string> {
    const key = `${shard} ${keyOf(claim)}`;
    const times = this.#ports.isReserving(shard) ? 0 : (this.#strangers.get(key) ?? 0) + 1;
    this.#strangers.set(key, times);
    if (times >= 2) await this.#giveBack(shard, claim);
    return key;
  }

  async #giveBack(shard: ShardId, held: Held): Promise<void> {
    const { client, executor, log } = this.#ports;
    const claim = { executor, taskId: held.taskId, token: held.token };
    try {
      if (held.cancelling) await client.fail(claim, "cancelled", "cancelled", { signal: this.#signal });
      else if (!held.started) await client.release(claim, { signal: this.#signal });
      else await client.fail(claim, "executor-lost", "the executor does not know this claim", { signal: this.#signal });
      log(`released ${held.taskId} of shard ${shard}: an earlier claim that this worker does not know`);
    } catch (error) {
      if (!isFault(error) && !isRejected(error)) throw error;
    }
  }

  #claims(shard: ShardId): readonly { readonly taskId: string; readonly token: number; readonly heard?: number }[] {
    return [...(this.#byShard.get(shard)?.values() ?? [])].map(({ claim: { taskId, token }, heard }) =>
      heard === 0 ? { taskId, token } : { taskId, token, heard },
    );
  }
}
