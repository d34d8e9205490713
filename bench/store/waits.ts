/** Why a reader had to wait: for a garbage collection, or because the machine had no free core for this thread. */
import { closeSync, openSync, readSync } from "node:fs";
import { constants, PerformanceObserver, type PerformanceEntry } from "node:perf_hooks";

export type Pauses = { readonly count: number; readonly ms: number; readonly longestMs: number };

type Collection = { readonly fromMono: number; readonly toMono: number; readonly isYoung: boolean };

/** A reader was answered: when, and how long this thread had waited for a core since it began. */
type Answer = { readonly dueMono: number; readonly endMono: number; readonly lineMs: number };

export class Waits {
  readonly #collections: Collection[] = [];
  readonly #answers: Answer[] = [];
  readonly #observer = new PerformanceObserver((list) => this.#note(list.getEntries()));
  readonly #line = new WaitingLine();

  constructor() {
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  answered(dueMono: number, endMono: number): void {
    this.#answers.push({ dueMono, endMono, lineMs: this.#line.ms() });
  }

  #note(entries: readonly PerformanceEntry[]): void {
    for (const entry of entries) {
      const { startTime, duration } = entry;
      const { kind } = (entry as PerformanceEntry & { readonly detail: { readonly kind: number } }).detail;
      const isYoung = kind === constants.NODE_PERFORMANCE_GC_MINOR;
      this.#collections.push({ fromMono: startTime, toMono: startTime + duration, isYoung });
    }
  }

  async end(): Promise<void> {
    await new Promise(setImmediate); // the last ones are reported a turn later
    this.#note(this.#observer.takeRecords());
    this.#observer.disconnect();
    this.#line.close();
  }

  /** How long readers waited. */
  get ms(): readonly number[] {
    return this.#answers.map(({ dueMono, endMono }) => endMono - dueMono);
  }

  pauses(isYoung: boolean): Pauses {
    const all = this.#collections.filter((one) => one.isYoung === isYoung);
    const lengths = all.map(({ fromMono, toMono }) => toMono - fromMono);
    return { count: all.length, ms: lengths.reduce((a, b) => a + b, 0), longestMs: Math.max(0, ...lengths) };
  }

  /** For readers that waited longer, what they waited for most of the time. */
  causes(longerThanMs: number): { readonly collections: number; readonly noCore: number; readonly other: number } {
    const causes = { collections: 0, noCore: 0, other: 0 };
    for (const [i, { dueMono, endMono }] of this.#answers.entries()) {
      const waitedMs = endMono - dueMono;
      if (waitedMs <= longerThanMs) continue;
      const inLineMs = this.#inLineMs(i);
      const collectedMs = this.#collectedMs(dueMono, endMono);
      if (Math.max(inLineMs, collectedMs) < waitedMs / 2) causes.other += 1;
      else causes[inLineMs > collectedMs ? "noCore" : "collections"] += 1;
    }
    return causes;
  }

  #collectedMs(fromMono: number, toMono: number): number {
    const both = (one: Collection): number => Math.min(toMono, one.toMono) - Math.max(fromMono, one.fromMono);
    return this.#collections.reduce((sum, one) => sum + Math.max(0, both(one)), 0);
  }

  /** Since the last answer before this reader came: others may have waited for the same core. */
  #inLineMs(index: number): number {
    const { dueMono = 0, lineMs = 0 } = this.#answers[index] ?? {};
    let before = index - 1;
    while (before > 0 && (this.#answers[before]?.endMono ?? 0) > dueMono) before -= 1;
    return lineMs - (this.#answers[before]?.lineMs ?? lineMs);
  }
}

/** How long this thread was ready to run and did not run; always 0 if the system does not say. */
class WaitingLine {
  readonly #fd: number | undefined;
  readonly #text = Buffer.alloc(100);

  constructor() {
    try {
      this.#fd = openSync("/proc/thread-self/schedstat", "r");
    } catch {
      this.#fd = undefined; // not Linux
    }
  }

  ms(): number {
    if (this.#fd === undefined) return 0;
    const length = readSync(this.#fd, this.#text, 0, this.#text.length, 0);
    return Number(this.#text.toString("latin1", 0, length).split(" ")[1]) / 1e6;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
  }
}
