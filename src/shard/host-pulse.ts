/** Lets time pass in every shard, and tells watchers that the owner lives. One timer each for the whole node. */
import type { Clock } from "#base/clock.ts";
import type { HostSettings } from "./host-settings.ts";
import type { HostedShard } from "./host-shard.ts";

export type PulsePorts = {
  readonly clock: Clock;
  readonly settings: Pick<HostSettings, "tickMs" | "tickMsMin" | "heartbeatMs">;
  readonly shards: () => Iterable<HostedShard>;
  /** Time passes; the shard's next tick is due at `tickDueMono`. */
  readonly tick: (shard: HostedShard) => void;
};

export class Pulse {
  readonly #ports: PulsePorts;
  #cancelTick: (() => void) | undefined;
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
    if (!this.#stopped) this.#cancelTick = this.#ports.clock.after(ms, () => this.#tick());
  }

  #tick(): void {
    const { clock, settings, shards, tick } = this.#ports;
    let nextMono = clock.monotonicMs() + settings.tickMs;
    for (const shard of shards()) {
      if (shard.phase !== "serving") continue;
      tick(shard);
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
