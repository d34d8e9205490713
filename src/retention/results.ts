/**
 * Keeps the results of ended jobs (logs, outputs that tasks name) for as long as their door promises. The owner of a
 * job's shard walks through its history slowly, and renews pins that would end before the next walk.
 *
 * RT5 A result stays pinned from its commit until its door's time after the end of its job is over, and no longer.
 */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Keeps } from "./keeps.ts";

/** A job that has ended, or one that is live and has results already. */
export type JobResults = {
  readonly tenant: string;
  /** 0 while it has not ended. */
  readonly endedAtMs: number;
  readonly digests: readonly Digest[];
};

export type ResultsPorts = {
  readonly keeps: Pick<Keeps, "pinAll" | "sliceMs">;
  readonly pins: (tenant: string) => Pick<BlobStore, "pin">;
  readonly clock: Clock;
  /** Of the shards that this node owns, submitted from the time on, of doors that keep results. */
  readonly jobs: (fromMs: number, signal: AbortSignal) => AsyncIterable<JobResults>;
  /** How long results stay after the end of their job. */
  readonly keepMs: number;
  readonly log: (line: string) => void;
  readonly observe?: ((event: { readonly kind: "renewed" | "lost" | "failed" }) => void) | undefined;
};

/** A job may run for long: one that was submitted long before the window may have ended within it. */
const jobMsMax = 35 * 24 * 3_600_000;
const pauseMs = 20;

export class ResultsKeeper implements AsyncDisposable {
  readonly #ports: ResultsPorts;
  readonly #ended = new AbortController();
  readonly #done: Promise<void>;

  constructor(ports: ResultsPorts, firstMs = 60_000) {
    this.#ports = ports;
    this.#done = this.#run(firstMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the keeper ends"));
    await this.#done;
  }

  async #run(firstMs: number): Promise<void> {
    const { clock, keeps, log, observe } = this.#ports;
    const { signal } = this.#ended;
    for (let waitMs = firstMs; !signal.aborted;) {
      await clock.sleep(waitMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await this.walk();
        waitMs = keeps.sliceMs / 4;
      } catch (error) {
        if (signal.aborted) return;
        observe?.({ kind: "failed" });
        log(`keep results: ${error instanceof Error ? error.message : String(error)}`);
        waitMs = 60_000;
      }
    }
  }

  /** Once through everything; returns how many jobs were pinned. */
  async walk(): Promise<number> {
    const { jobs, keepMs, clock, keeps, pins, log, observe } = this.#ports;
    const { signal } = this.#ended;
    let pinned = 0;
    for await (const { tenant, endedAtMs, digests } of jobs(clock.wallMs() - keepMs - jobMsMax, signal)) {
      const nowMs = clock.wallMs();
      const untilMs = endedAtMs === 0 ? nowMs + keeps.sliceMs : endedAtMs + keepMs;
      if (signal.aborted) return pinned;
      if (untilMs <= nowMs || digests.length === 0) continue;
      const isThere = await keeps.pinAll(pins(tenant), [...new Set(digests)], untilMs, nowMs);
      observe?.({ kind: isThere === undefined ? "lost" : "renewed" });
      if (isThere === undefined) log(`keep results of ${tenant}: some blobs of a job that ended are gone`);
      pinned += 1;
      await clock.sleep(pauseMs, signal).catch(() => undefined);
    }
    return pinned;
  }
}
