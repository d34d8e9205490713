/**
 * Deletes history that has been kept long enough. The owner of a shard does it periodically, a few jobs at a time with
 * a pause after each, so that it never delays writing. Ages are measured by the store's clock.
 */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { Journal } from "#journal/journal.ts";

export type RetentionSettings = {
  /** How long after its end a job is kept; undefined: for ever. */
  readonly keepMs: number | undefined;
  readonly everyMs: number;
  readonly jobsPerSlice: number;
  readonly pauseMs: number;
};

export const defaultRetentionSettings: RetentionSettings = {
  keepMs: undefined,
  everyMs: 60_000,
  jobsPerSlice: 100,
  pauseMs: 50,
};

export type RetentionPorts = {
  readonly clock: Clock;
  readonly journal: Pick<Journal, "history">;
  readonly settings: RetentionSettings;
  readonly storeNowMs: () => number;
  /** The shards that this node serves now. */
  readonly shards: () => readonly ShardId[];
  readonly report: (doing: string, error: unknown) => void;
};

export class HistoryRetention {
  readonly #ports: RetentionPorts;
  #stopped = false;
  #cancel: (() => void) | undefined;
  /** Jobs differ in size: a slice that the store fails to delete is halved until it succeeds. */
  #slice: number;

  constructor(ports: RetentionPorts) {
    this.#ports = ports;
    this.#slice = ports.settings.jobsPerSlice;
  }

  start(): void {
    const { clock, settings } = this.#ports;
    const { keepMs, everyMs } = settings;
    if (keepMs === undefined || this.#stopped) return;
    this.#cancel = clock.after(everyMs, () => void this.#sweep(keepMs).then(() => this.start()));
  }

  kill(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  async #sweep(keepMs: number): Promise<void> {
    const { shards, storeNowMs, report } = this.#ports;
    const endedBeforeMs = storeNowMs() - keepMs;
    for (const shard of shards())
      try {
        await this.#trim(shard, endedBeforeMs);
      } catch (error) {
        if (this.#stopped) return;
        this.#slice = Math.max(1, Math.floor(this.#slice / 2));
        report(`forget old history of shard ${shard}`, error);
      }
  }

  async #trim(shard: ShardId, endedBeforeMs: number): Promise<void> {
    const { clock, journal, settings, shards } = this.#ports;
    for (;;) {
      if (this.#stopped || !shards().includes(shard)) return;
      const limit = this.#slice;
      if ((await journal.history.trim(shard, endedBeforeMs, limit)) < limit) return;
      this.#slice = Math.min(settings.jobsPerSlice, limit * 2);
      await this.#pause(clock, settings.pauseMs);
    }
  }

  /** Like `sleep`, but ends when the node stops. */
  #pause(clock: Clock, ms: number): Promise<void> {
    return new Promise((resolve) => (this.#cancel = clock.after(ms, resolve)));
  }
}
