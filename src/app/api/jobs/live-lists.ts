/**
 * Lists that viewers keep open. Viewers of the same list share one query: a hundred open pages cost one query a second,
 * and a list without viewers costs none.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";

export type LiveListOptions = {
  readonly everyMs: number;
  /** Different lists at once, over all viewers. */
  readonly listsMax: number;
  readonly viewersMax: number;
};

type Shared<T> = {
  latest: { readonly text: string; readonly value: T } | undefined;
  viewers: number;
  wake: PromiseWithResolvers<void>;
  readonly stop: AbortController;
};

export class LiveLists<T> {
  readonly #read: (key: string, signal: AbortSignal) => Promise<T>;
  readonly #clock: Clock;
  readonly #options: LiveListOptions;
  readonly #lists = new Map<string, Shared<T>>();
  #viewers = 0;

  constructor(read: (key: string, signal: AbortSignal) => Promise<T>, clock: Clock, options: LiveListOptions) {
    this.#read = read;
    this.#clock = clock;
    this.#options = options;
  }

  /** The list now, and after each change. A slow viewer misses versions, never the newest. */
  async *follow(key: string, signal: AbortSignal): AsyncGenerator<T> {
    const list = this.#join(key);
    const gone = aborted(signal); // once for each viewer: a listener for each wait would pile up
    let seen: string | undefined;
    try {
      while (!signal.aborted) {
        const { latest, wake } = list;
        if (latest && latest.text !== seen) {
          seen = latest.text;
          yield latest.value;
          continue;
        }
        await Promise.race([wake.promise, gone]);
      }
    } finally {
      this.#leave(key, list);
    }
  }

  #join(key: string): Shared<T> {
    const known = this.#lists.get(key);
    if (this.#viewers >= this.#options.viewersMax || (!known && this.#lists.size >= this.#options.listsMax))
      throw new Fault("exhausted", "follow a list", { viewers: this.#viewers, lists: this.#lists.size });
    this.#viewers += 1;
    if (known) {
      known.viewers += 1;
      return known;
    }
    const list: Shared<T> = {
      latest: undefined,
      viewers: 1,
      wake: Promise.withResolvers(),
      stop: new AbortController(),
    };
    this.#lists.set(key, list);
    void this.#keepReading(key, list);
    return list;
  }

  #leave(key: string, list: Shared<T>): void {
    this.#viewers -= 1;
    list.viewers -= 1;
    if (list.viewers > 0) return;
    list.stop.abort();
    this.#lists.delete(key);
  }

  async #keepReading(key: string, list: Shared<T>): Promise<void> {
    const { signal } = list.stop;
    while (!signal.aborted) {
      try {
        const value = await this.#read(key, signal);
        const text = JSON.stringify(value);
        if (text !== list.latest?.text) {
          list.latest = { text, value };
          list.wake.resolve();
          list.wake = Promise.withResolvers();
        }
      } catch {
        // The list stays as it was; a shard that moves answers again soon.
      }
      await this.#clock.sleep(this.#options.everyMs, signal).catch(() => {});
    }
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
