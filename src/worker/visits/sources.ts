/**
 * How a worker hears about work: each node answers for all of its shards. A worker with free slots asks all nodes at
 * once and waits. One without cancels its requests, so that no node notifies a worker that cannot take the work.
 * Meanwhile it asks one node after another, so that known work does not keep it from all other (K10).
 */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import { Backoff } from "#shard/router/backoff.ts";
import type { ReadyShard, FreeSlots } from "#shard/watch/ready-desk.ts";

export type WorkSource = {
  /** Held until there is work for such a worker, or the time is up. */
  ready(room: FreeSlots, waitMs: number, signal: AbortSignal): Promise<readonly ReadyShard[]>;
};

/** The nodes that can be asked now, by name. */
export type WorkSources = () => ReadonlyMap<string, WorkSource>;

export type HintPorts = {
  readonly sources: WorkSources;
  readonly clock: Clock;
  readonly random: Random;
  /** With nothing free when there is no room, or enough to do. */
  readonly room: () => FreeSlots;
  readonly heard: (shard: ShardId, weight: number) => void;
  /** Called when there is a hint about work. */
  readonly onReady: () => void;
  readonly pollMs: number;
  /** How often to look for new nodes, and to ask one of them in passing. */
  readonly everyMs: number;
  readonly log: (line: string) => void;
};

/** An empty answer this soon means that the request was not held; asking again at once would be a busy loop. */
const suddenMs = 50;

export class WorkHints {
  readonly #ports: HintPorts;
  readonly #leave: AbortSignal;
  readonly #following = new Map<string, Promise<void>>();
  #room = new AbortController();
  #changed = Promise.withResolvers<void>();
  /** Claims obtained since the start: a hint that led to none is not followed up at once. */
  #claims = 0;

  constructor(ports: HintPorts, leave: AbortSignal) {
    this.#ports = ports;
    this.#leave = leave;
    leave.addEventListener("abort", () => this.roomChanged(), { once: true });
  }

  /** Runs until the worker leaves. */
  async listen(): Promise<void> {
    const { sources, clock, everyMs } = this.#ports;
    for (let turn = 0; !this.#leave.aborted; turn += 1) {
      for (const name of sources().keys())
        if (!this.#following.has(name))
          this.#following.set(
            name,
            this.#follow(name).finally(() => this.#following.delete(name)),
          );
      if (this.#ports.room().free <= 0) await this.#lookAround(turn);
      await clock.sleep(everyMs, this.#leave).catch(() => {});
    }
    await Promise.all(this.#following.values());
  }

  async #lookAround(turn: number): Promise<void> {
    const { sources, room, heard, onReady, log } = this.#ports;
    const all = [...sources().values()];
    try {
      const ready = await all[turn % all.length]?.ready({ ...room(), free: 1 }, 0, this.#leave);
      for (const [shard, weight] of ready ?? []) heard(shard, weight);
      // A slot may have become free while the node was asked: then nothing else would wake the pollers (K9).
      if (ready && ready.length > 0) onReady();
    } catch (error) {
      if (!isFault(error) && !this.#leave.aborted) log(`look for work: ${String(error)}`);
    }
  }

  /** A hint led to a claim. */
  confirmed(): void {
    this.#claims += 1;
  }

  roomChanged(): void {
    if (this.#ports.room().free <= 0 || this.#leave.aborted) {
      this.#room.abort(new Fault("unavailable", "wait for work", { why: "no slot is free any more" }));
      this.#room = new AbortController();
    }
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  /** Runs as long as there is such a source. */
  async #follow(name: string): Promise<void> {
    const { sources, clock, random, room, heard, onReady, pollMs, log } = this.#ports;
    const backoff = new Backoff({ backoffMs: 20, backoffMsMax: 500 }, random);
    while (!this.#leave.aborted) {
      const source = sources().get(name);
      if (!source) return;
      const { free, ...about } = room();
      if (free <= 0) {
        await this.#changed.promise;
        continue;
      }
      const claims = this.#claims;
      const askedMono = clock.monotonicMs();
      const { signal: roomSignal } = this.#room;
      try {
        const ready = await source.ready({ ...about, free }, pollMs, roomSignal);
        for (const [shard, weight] of ready) heard(shard, weight);
        if (ready.length > 0) {
          onReady();
          await this.#changed.promise; // at least a visit changes something
        }
        const isFruitless = ready.length > 0 && this.#claims === claims;
        const isSudden = ready.length === 0 && clock.monotonicMs() - askedMono < suddenMs;
        if ((isFruitless || isSudden) && !roomSignal.aborted) await clock.sleep(backoff.next(), this.#leave);
        else backoff.reset();
      } catch (error) {
        if (this.#leave.aborted) return;
        if (roomSignal.aborted) continue;
        if (!isFault(error)) log(`wait for work: ${String(error)}`);
        await clock.sleep(backoff.next(), this.#leave).catch(() => {});
      }
    }
  }
}
