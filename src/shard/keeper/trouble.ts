import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";

/** A shard that could not be served: why, and since when by the wall clock, for people. */
export type Trouble = { readonly why: string; readonly sinceWallMs: number; readonly times: number };

type Remembered = Trouble & { readonly notBeforeMono: number; readonly overMono: number | undefined };

/** Remembers failures, so that they are reported, and retried more and more slowly. */
export class Troubles {
  readonly #clock: Clock;
  readonly #settings: { readonly troubleMs: number; readonly troubleMsMax: number };
  readonly #all = new Map<ShardId, Remembered>();

  constructor(clock: Clock, settings: { readonly troubleMs: number; readonly troubleMsMax: number }) {
    this.#clock = clock;
    this.#settings = settings;
  }

  /** The current ones. */
  get all(): ReadonlyMap<ShardId, Trouble> {
    return new Map([...this.#all].filter(([, { overMono }]) => overMono === undefined));
  }

  add(shard: ShardId, error: unknown): void {
    const { troubleMs, troubleMsMax } = this.#settings;
    const mono = this.#clock.monotonicMs();
    const known = this.#all.get(shard);
    // A failure soon after the last one seemed over counts as the same: it is not retried in a tight loop.
    const before = known?.overMono !== undefined && mono - known.overMono > troubleMsMax ? undefined : known;
    const times = (before?.times ?? 0) + 1;
    this.#all.set(shard, {
      why: error instanceof Error ? error.message : String(error),
      sinceWallMs: before?.sinceWallMs ?? this.#clock.wallMs(),
      times,
      notBeforeMono: mono + Math.min(troubleMs * 2 ** (times - 1), troubleMsMax),
      overMono: undefined,
    });
  }

  mayTry(shard: ShardId): boolean {
    return (this.#all.get(shard)?.notBeforeMono ?? Number.NEGATIVE_INFINITY) <= this.#clock.monotonicMs();
  }

  /** Notes that the shard is served again. Trouble that comes back soon after still counts as the same trouble. */
  over(shard: ShardId): void {
    const known = this.#all.get(shard);
    if (known && known.overMono === undefined) this.#all.set(shard, { ...known, overMono: this.#clock.monotonicMs() });
  }

  /** Another node is responsible for the shard now. */
  forget(shard: ShardId): void {
    this.#all.delete(shard);
  }
}
