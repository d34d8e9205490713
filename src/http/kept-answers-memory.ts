/** Answers kept in memory: bounded in number, dropped after a time. For one node, and for tests. */
import type { Begun, KeptAnswer, KeptAnswers } from "./idempotency.ts";

type Entry = { readonly request: string; readonly untilMs: number; readonly answer: KeptAnswer | undefined };

export type KeptAnswersOptions = {
  readonly wallMs: () => number;
  readonly keptMs: number;
  /** How long a request may be handled before its key counts as abandoned. */
  readonly busyMs: number;
  readonly entriesMax: number;
};

export class KeptAnswersInMemory implements KeptAnswers {
  readonly #options: KeptAnswersOptions;
  readonly #entries = new Map<string, Entry>(); // oldest first

  constructor(options: KeptAnswersOptions) {
    this.#options = options;
  }

  begin(key: string, request: string): Promise<Begun> {
    const nowMs = this.#options.wallMs();
    const entry = this.#entries.get(key);
    if (entry && entry.untilMs > nowMs) {
      if (entry.request !== request) return Promise.resolve({ kind: "other" });
      return Promise.resolve(entry.answer ? { kind: "answered", answer: entry.answer } : { kind: "busy" });
    }
    this.#put(key, { request, untilMs: nowMs + this.#options.busyMs, answer: undefined });
    return Promise.resolve({ kind: "new" });
  }

  finish(key: string, request: string, answer: KeptAnswer): Promise<void> {
    if (this.#entries.get(key)?.request === request)
      this.#put(key, { request, untilMs: this.#options.wallMs() + this.#options.keptMs, answer });
    return Promise.resolve();
  }

  abandon(key: string, request: string): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry?.request === request && entry.answer === undefined) this.#entries.delete(key);
    return Promise.resolve();
  }

  #put(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#options.entriesMax) return;
      this.#entries.delete(oldest);
    }
  }
}
