/** A shard as a client sees it: whether it answers, and for how long it did not. */
import { setTimeout as pause } from "node:timers/promises";
import { isFault } from "#base/fault.ts";
import type { Router } from "#shard/router/router.ts";

/** Milliseconds from `sinceMono` until each shard has answered from a newer epoch than before. */
export async function timeToAnswer(
  router: Router,
  shards: readonly { readonly shard: number; readonly epoch: number }[],
  sinceMono: number,
  limitMs: number,
): Promise<readonly number[]> {
  return await Promise.all(
    shards.map(async ({ shard, epoch }) => {
      for (;;) {
        const answered = await epochOf(router, shard, 250);
        const tookMs = performance.now() - sinceMono;
        if (answered !== undefined && answered > epoch) return tookMs;
        if (tookMs > limitMs) throw new Error(`shard ${shard} did not answer within ${limitMs} ms`);
        await pause(20);
      }
    }),
  );
}

async function epochOf(router: Router, shard: number, deadlineMs: number): Promise<number | undefined> {
  try {
    const answer = await router.request({ kind: "query", shard, query: { kind: "stats" } }, { deadlineMs });
    return answer.stamp.epoch;
  } catch (error) {
    if (!isFault(error)) throw error;
    return undefined;
  }
}

/** Asks one shard again and again and remembers the longest time between two answers, and how often the shard moved. */
export class GapProbe {
  readonly shard: number;
  readonly #router: Router;
  readonly #loop: Promise<void>;
  #stopped = false;
  #longestMs = 0;
  #answeredMono = performance.now();
  #epoch = 0;
  #moves = 0;

  constructor(router: Router, shard: number) {
    this.#router = router;
    this.shard = shard;
    this.#loop = this.#run();
  }

  /** Counts again from now. */
  reset(): void {
    this.#longestMs = 0;
    this.#moves = 0;
    this.#answeredMono = performance.now();
  }

  get seen(): { readonly longestMs: number; readonly moves: number } {
    return { longestMs: Math.max(this.#longestMs, performance.now() - this.#answeredMono), moves: this.#moves };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const epoch = await epochOf(this.#router, this.shard, 2_000);
      if (epoch !== undefined) this.#answered(epoch);
      await pause(15);
    }
  }

  #answered(epoch: number): void {
    const mono = performance.now();
    this.#longestMs = Math.max(this.#longestMs, mono - this.#answeredMono);
    this.#answeredMono = mono;
    if (epoch > this.#epoch && this.#epoch > 0) this.#moves += 1;
    this.#epoch = epoch;
  }
}
