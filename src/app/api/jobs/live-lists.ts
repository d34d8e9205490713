/**
 * Lists that viewers keep open. Viewers of the same list share one query, which is made when something has changed, and
 * at most once a second: a hundred open pages cost what one does, and a list in which nothing happens costs nothing.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";

export type LiveListOptions<T> = {
  readonly read: (key: string, signal: AbortSignal) => Promise<T>;
  /** Yields when the list may have changed. Left out, or while it fails: the list is read every `everyMs`. */
  readonly changes?: ((key: string, signal: AbortSignal) => AsyncIterable<unknown>) | undefined;
  readonly clock: Clock;
  /** Not read more often than this, and without a change not more often than `quietMs`. */
  readonly everyMs: number;
  readonly quietMs: number;
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
  readonly #options: LiveListOptions<T>;
  readonly #lists = new Map<string, Shared<T>>();
  #viewers = 0;

  constructor(options: LiveListOptions<T>) {
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
    const { changes, clock, everyMs, quietMs } = this.#options;
    const { signal } = list.stop;
    while (!signal.aborted) {
      try {
        await using news = new News(changes?.(key, signal) ?? nothing(), signal);
        while (!signal.aborted && !news.hasEnded) {
          news.forget();
          await this.#readOnce(key, list);
          const readMono = clock.monotonicMs();
          await news.next(clock, quietMs);
          const restMs = readMono + everyMs - clock.monotonicMs();
          if (restMs > 0) await clock.sleep(restMs, signal);
        }
      } catch {
        // The changes are asked for again.
      }
      if (!signal.aborted) await this.#readOnce(key, list);
      await clock.sleep(everyMs, signal).catch(() => {});
    }
  }

  async #readOnce(key: string, list: Shared<T>): Promise<void> {
    try {
      const value = await this.#options.read(key, list.stop.signal);
      const text = JSON.stringify(value);
      if (text === list.latest?.text) return;
      list.latest = { text, value };
      list.wake.resolve();
      list.wake = Promise.withResolvers();
    } catch {
      // The list stays as it was; a shard that moves answers again soon.
    }
  }
}

/** Takes what comes, so that any number of changes between two reads is one. */
class News implements AsyncDisposable {
  readonly #source: AsyncIterator<unknown>;
  #wake = Promise.withResolvers<void>();
  hasEnded = false;

  constructor(source: AsyncIterable<unknown>, signal: AbortSignal) {
    this.#source = source[Symbol.asyncIterator]();
    signal.addEventListener("abort", () => this.#wake.resolve(), { once: true });
    void this.#take();
  }

  /** What has come so far is known. */
  forget(): void {
    if (!this.hasEnded) this.#wake = Promise.withResolvers();
  }

  /** Resolves when something has come since, or after the time. */
  async next(clock: Clock, quietMs: number): Promise<void> {
    const cancel = clock.after(quietMs, () => this.#wake.resolve());
    await this.#wake.promise;
    cancel();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source.return?.().catch(() => {});
  }

  async #take(): Promise<void> {
    try {
      while (!(await this.#source.next()).done) this.#wake.resolve();
    } catch {
      // As if it had ended.
    }
    this.hasEnded = true;
    this.#wake.resolve();
  }
}

async function* nothing(): AsyncGenerator<never> {}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
