/** Ticks every shard, and tells watchers that the owner is alive. One timer each for the whole node. */
import type { Clock } from "#base/clock.ts";
import type { HostSettings } from "./settings.ts";
import type { HostedShard } from "./shard.ts";

export type PulsePorts = {
  readonly clock: Clock;
  readonly settings: Pick<HostSettings, "tickMs" | "tickMsMin" | "heartbeatMs">;
  readonly shards: () => Iterable<HostedShard>;
  /** Lets time pass in the shard if that is due by `byMono`; its next tick is due at `tickDueMono`. */
  readonly tick: (shard: HostedShard, byMono: number) => void;
};

const heldBackMax = 3;

export class Pulse {
  readonly #ports: PulsePorts;
  #cancelTick: (() => void) | undefined;
  #tickDueMono = 0;
  /** How often in a row the tick was held back. */
  #heldBack = 0;
  #cancelHeartbeat: (() => void) | undefined;
  #stopped = false;

  constructor(ports: PulsePorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#tickIn(this.#ports.settings.tickMs);
    this.#heartbeatLater();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTick?.();
    this.#cancelHeartbeat?.();
  }

  #tickIn(ms: number): void {
    if (this.#stopped) return;
    this.#tickDueMono = this.#ports.clock.monotonicMs() + ms;
    this.#cancelTick = this.#ports.clock.after(ms, () => this.#tick());
  }

  #tick(): void {
    const { clock, settings, shards, tick } = this.#ports;
    const lateMs = clock.monotonicMs() - this.#tickDueMono;
    // The process was stopped, or busy: renewals may be waiting in its sockets. They are handled first, before any
    // lease expires (K11). The process may be stopped again before that; but a node that is always late must tick, too.
    this.#heldBack = lateMs > settings.tickMs && this.#heldBack < heldBackMax ? this.#heldBack + 1 : 0;
    if (this.#heldBack > 0) return this.#tickIn(settings.tickMs);
    let nextMono = clock.monotonicMs() + settings.tickMs;
    // Include shards that are due in a moment: they ticked at the end of a round like this one, and a separate round
    // for them would wake the node twice as often.
    const byMono = clock.monotonicMs() + settings.tickMsMin;
    for (const shard of shards()) {
      if (shard.phase !== "serving") continue;
      tick(shard, byMono);
      nextMono = Math.min(nextMono, shard.tickDueMono);
    }
    this.#tickIn(Math.max(settings.tickMsMin, nextMono - clock.monotonicMs()));
  }

  #heartbeatLater(): void {
    if (this.#stopped) return;
    const { clock, settings, shards } = this.#ports;
    this.#cancelHeartbeat = clock.after(settings.heartbeatMs, () => {
      for (const shard of shards())
        if (shard.phase === "serving" && shard.leaseStands) shard.watchers.heartbeat(shard.stamp);
      this.#heartbeatLater();
    });
  }
}
