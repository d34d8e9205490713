/** Lets time pass in every shard, and tells watchers that the owner lives. One timer each for the whole node. */
import type { Clock } from "#base/clock.ts";
import type { HostSettings } from "./settings.ts";
import type { HostedShard } from "./shard.ts";

export type PulsePorts = {
  readonly clock: Clock;
  readonly settings: Pick<HostSettings, "tickMs" | "tickMsMin" | "heartbeatMs">;
  readonly shards: () => Iterable<HostedShard>;
  /** Time passes, where that is due by then; the shard's next tick is due at `tickDueMono`. */
  readonly tick: (shard: HostedShard, byMono: number) => void;
};

const heldBackMax = 3;

export class Pulse {
  readonly #ports: PulsePorts;
  #cancelTick: (() => void) | undefined;
  #tickDueMono = 0;
  /** How often in a row. */
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
    // The process was stopped, or busy: renewals may lie in its sockets. They are heard first, before anyone's time is
    // up (K11). It may be stopped again before it has heard them; but a node that is always late must tick, too.
    this.#heldBack = lateMs > settings.tickMs && this.#heldBack < heldBackMax ? this.#heldBack + 1 : 0;
    if (this.#heldBack > 0) return this.#tickIn(settings.tickMs);
    let nextMono = clock.monotonicMs() + settings.tickMs;
    // Those whose time comes in a moment, too: they had their last turn at the end of a round like this one, and a
    // round for them alone would wake the node twice as often.
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
