/** What leaves a node's region, for each tenant: one limit for all that this node sends, rollbacks first. */
import type { Clock } from "#base/clock.ts";
import { Link } from "#swarm/link.ts";
import type { Priority } from "#swarm/uploads.ts";

export type WanPorts = {
  readonly clock: Clock;
  /** Bytes per second for all nodes of this region together, which share it alike; Infinity: no limit. */
  readonly limit: (tenant: string) => Promise<number>;
  readonly nodes: () => number;
};

type Open = { readonly link: Link<() => void>; cancelWake: (() => void) | undefined };

/** So often a limit that was changed is looked at while something waits. */
const lookEveryMs = 1_000;
const tenantsMax = 10_000;

export class WanLinks {
  readonly #ports: WanPorts;
  readonly #links = new Map<string, Open>();

  constructor(ports: WanPorts) {
    this.#ports = ports;
  }

  /** Resolves when so many bytes may be sent. */
  async pass(tenant: string, bytes: number, priority: Priority, signal: AbortSignal): Promise<void> {
    const limit = await this.#limit(tenant);
    if (limit === Infinity && !this.#links.has(tenant)) return;
    const open = this.#open(tenant, limit);
    const turn = Promise.withResolvers<void>();
    const leave = (): void => {
      open.link.leave(turn.resolve);
      turn.reject(signal.reason as Error);
    };
    signal.throwIfAborted();
    signal.addEventListener("abort", leave, { once: true });
    open.link.wait(turn.resolve, bytes, priority);
    await this.#pump(tenant, open);
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  async #pump(tenant: string, open: Open): Promise<void> {
    const { clock } = this.#ports;
    open.link.set(await this.#limit(tenant), clock.monotonicMs());
    const { going, waitMs } = open.link.next(clock.monotonicMs());
    for (const go of going) go();
    open.cancelWake?.();
    open.cancelWake = undefined;
    if (waitMs !== undefined) this.#wakeIn(Math.max(1, Math.min(lookEveryMs, Math.ceil(waitMs))), tenant, open);
  }

  #wakeIn(ms: number, tenant: string, open: Open): void {
    open.cancelWake = this.#ports.clock.after(ms, () => {
      // A limit that cannot be read now is read at the next look.
      this.#pump(tenant, open).catch(() => this.#wakeIn(lookEveryMs, tenant, open));
    });
  }

  async #limit(tenant: string): Promise<number> {
    return (await this.#ports.limit(tenant)) / Math.max(1, this.#ports.nodes());
  }

  #open(tenant: string, limit: number): Open {
    const known = this.#links.get(tenant);
    if (known) return known;
    const [oldest] = this.#links.keys();
    if (this.#links.size >= tenantsMax && oldest !== undefined) this.#links.delete(oldest);
    const open: Open = { link: new Link(limit, this.#ports.clock.monotonicMs()), cancelWake: undefined };
    this.#links.set(tenant, open);
    return open;
  }
}
