/** Works on deliveries that wait: each on the node that looks after it, a few at a time, again when it failed. */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Repository } from "#sources/book.ts";
import type { Triggered } from "#doors/ci/runs/trigger/trigger-event.ts";
import type { Deliveries, KeptDelivery } from "./deliveries.ts";

export type FollowPorts = {
  readonly deliveries: Deliveries;
  readonly clock: Clock;
  readonly repository: (tenant: string, name: string) => Promise<Repository>;
  readonly owns: (key: string, repository: Repository) => boolean;
  readonly run: (delivery: KeptDelivery, repository: Repository) => Promise<Triggered | { readonly ignored: string }>;
  readonly warn: (error: unknown) => void;
};

const lookEveryMs = 1_000;
const atOnceMax = 4;
/** The engine knows for a day which runs it has started: after that, trying again could start them twice. */
const triesForMs = 23 * 3_600_000;
const waitMsMax = 300_000;
/** How soon a node looks again at what another looks after. */
const ownedElsewhereMs = 10_000;

export class DeliveryFollower implements AsyncDisposable {
  readonly #ports: FollowPorts;
  readonly #waiting = new Map<string, { readonly delivery: KeptDelivery; readonly fromMs: number }>();
  readonly #busy = new Map<string, Promise<void>>();
  readonly #ended = new AbortController();
  readonly #done: Promise<unknown>;
  #wake = (): void => {};

  constructor(ports: FollowPorts) {
    this.#ports = ports;
    this.#done = Promise.all([this.#watch(), this.#look()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the door closes"));
    await this.#done;
    await Promise.all(this.#busy.values());
  }

  async #watch(): Promise<void> {
    const { deliveries, clock, warn } = this.#ports;
    const { signal } = this.#ended;
    while (!signal.aborted)
      try {
        for await (const { tenant, isReset, changed, removed } of deliveries.watch(signal)) {
          if (isReset)
            for (const [key, { delivery }] of this.#waiting) if (delivery.tenant === tenant) this.#waiting.delete(key);
          for (const name of removed) this.#waiting.delete(`${tenant}/${name}`);
          for (const delivery of changed) this.#learn(delivery);
          this.#wake();
        }
      } catch (error) {
        if (signal.aborted) return;
        warn(error);
        await clock.sleep(lookEveryMs, signal).catch(() => undefined);
      }
  }

  /** Not this node's, as long as its owner is there. */
  #later(delivery: KeptDelivery): void {
    const key = `${delivery.tenant}/${delivery.name}`;
    const known = this.#waiting.get(key);
    if (known?.delivery !== delivery) return;
    this.#waiting.set(key, { delivery, fromMs: this.#ports.clock.wallMs() + ownedElsewhereMs });
  }

  #learn(delivery: KeptDelivery): void {
    const key = `${delivery.tenant}/${delivery.name}`;
    if (delivery.value.handledMs !== undefined) return void this.#waiting.delete(key);
    const { tries } = delivery.value;
    const waitMs = tries === 0 ? 0 : Math.min(1_000 * 2 ** (tries - 1), waitMsMax);
    this.#waiting.set(key, { delivery, fromMs: this.#ports.clock.wallMs() + waitMs });
  }

  async #look(): Promise<void> {
    const { clock } = this.#ports;
    const { signal } = this.#ended;
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      for (const [key, { delivery, fromMs }] of this.#waiting) {
        if (this.#busy.size >= atOnceMax) break;
        if (this.#busy.has(key) || fromMs > clock.wallMs()) continue;
        this.#busy.set(
          key,
          this.#work(delivery).finally(() => this.#busy.delete(key)),
        );
      }
      await Promise.race([woken, clock.sleep(lookEveryMs, signal).catch(() => undefined)]);
    }
  }

  async #work(delivery: KeptDelivery): Promise<void> {
    const { deliveries, repository: find, owns, run, warn, clock } = this.#ports;
    const { tenant, name, value } = delivery;
    try {
      const repository = await find(tenant, value.repository).catch((error: unknown) => {
        if (isFault(error, "unavailable")) return undefined; // another node keeps it, and works on it
        throw error;
      });
      if (!repository || !owns(`${tenant}/${name}`, repository)) return this.#later(delivery);
      const ran = await run(delivery, repository);
      if ("ignored" in ran) return await deliveries.handled(delivery, { why: ran.ignored });
      const why = ran.started.length > 0 ? undefined : ran.passed.map((one) => `${one.path}: ${one.why}`).join("; ");
      const started = ran.started.map((one) => one.run);
      await deliveries.handled(delivery, { started, ...(why !== undefined && { why: why.slice(0, 2_000) }) });
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      const why = error instanceof Error ? error.message.slice(0, 1_000) : String(error);
      const isFinal = isFault(error, "invalid") || isFault(error, "not-found");
      if (!isFinal) warn(error);
      const isOver = isFinal || clock.wallMs() - value.atMs > triesForMs;
      await (isOver ? deliveries.handled(delivery, { why }) : deliveries.failed(delivery, why)).catch(warn);
    }
  }
}
