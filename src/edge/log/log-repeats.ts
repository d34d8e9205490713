/** Lets the first few similar lines through, counts the rest, and logs the count at the end of the interval. */
import type { Clock } from "#base/clock.ts";
import type { LogLevel } from "./log-level.ts";

export type LogKind = { readonly level: LogLevel; readonly event: string; readonly reason: string | undefined };

type Entry = { readonly kind: LogKind; logged: number; suppressed: number; readonly endsMonoMs: number };

const kindsMax = 500;

export class LogRepeats implements Disposable {
  readonly #clock: Clock;
  readonly #limits: { readonly repeatsMax: number; readonly repeatsWithinMs: number };
  readonly #tell: (kind: LogKind, count: number) => void;
  readonly #entries = new Map<string, Entry>();
  #cancel: (() => void) | undefined;

  constructor(
    clock: Clock,
    limits: { readonly repeatsMax: number; readonly repeatsWithinMs: number },
    tell: (kind: LogKind, count: number) => void,
  ) {
    this.#clock = clock;
    this.#limits = limits;
    this.#tell = tell;
  }

  mayTell(kind: LogKind): boolean {
    const entry = this.#entryOf(kind);
    if (entry.logged < this.#limits.repeatsMax) {
      entry.logged += 1;
      return true;
    }
    entry.suppressed += 1;
    this.#arm();
    return false;
  }

  [Symbol.dispose](): void {
    this.#cancel?.();
    this.#cancel = undefined;
    for (const { kind, suppressed } of this.#entries.values()) if (suppressed > 0) this.#tell(kind, suppressed);
    this.#entries.clear();
  }

  #entryOf(kind: LogKind): Entry {
    const key = `${kind.level} ${kind.event} ${kind.reason ?? ""}`;
    const nowMs = this.#clock.monotonicMs();
    const known = this.#entries.get(key);
    if (known && nowMs < known.endsMonoMs) return known;
    if (known || this.#entries.size >= kindsMax) this.#end(nowMs);
    // Too many different kinds: their reasons are generated. Count them together.
    const full = this.#entries.size >= kindsMax;
    const shared: LogKind = { level: kind.level, event: "other events", reason: undefined };
    const entry = full ? this.#entries.get(shared.level) : undefined;
    if (entry) return entry;
    const made = {
      kind: full ? shared : kind,
      logged: 0,
      suppressed: 0,
      endsMonoMs: nowMs + this.#limits.repeatsWithinMs,
    };
    this.#entries.set(full ? shared.level : key, made);
    return made;
  }

  /** One timer, and only while there is a count to log. */
  #arm(): void {
    this.#cancel ??= this.#clock.after(this.#limits.repeatsWithinMs, () => {
      this.#cancel = undefined;
      this.#end(this.#clock.monotonicMs());
      for (const { suppressed } of this.#entries.values()) if (suppressed > 0) return this.#arm();
    });
  }

  #end(nowMs: number): void {
    for (const [key, { kind, suppressed, endsMonoMs }] of this.#entries) {
      if (nowMs < endsMonoMs) continue;
      this.#entries.delete(key);
      if (suppressed > 0) this.#tell(kind, suppressed);
    }
  }
}
