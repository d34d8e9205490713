import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";

/** A shard that could not be served: why, and since when by the wall clock, for people. */
export type Trouble = { readonly why: string; readonly sinceWallMs: number; readonly times: number };

type Remembered = Trouble & { readonly notBeforeMono: number; readonly overMono: number | undefined };

/** Remembers what went wrong, so that it is reported, and tried again ever more slowly. */
export class Troubles {
  readonly #clock: Clock;
  readonly #settings: { readonly troubleMs: number; readonly troubleMsMax: number };
  readonly #all = new Map<ShardId, Remembered>();

  constructor(clock: Clock, settings: { readonly troubleMs: number; readonly troubleMsMax: number }) {
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Those that stand. */
  get all(): ReadonlyMap<ShardId, Trouble> {
    return new Map([...this.#all].filter(([, { overMono }]) => overMono === undefined));
  }

  add(shard: ShardId, error: unknown): void {
    const { troubleMs, troubleMsMax } = this.#settings;
    const mono = this.#clock.monotonicMs();
    const known = this.#all.get(shard);
    // One that comes back soon after it seemed over is the same one: it is not tried in a tight circle.
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

  /** The shard is served again. */
  over(shard: ShardId): void {
    const known = this.#all.get(shard);
    if (known && known.overMono === undefined) this.#all.set(shard, { ...known, overMono: this.#clock.monotonicMs() });
  }

  /** The shard is somebody else's concern now. */
  forget(shard: ShardId): void {
    this.#all.delete(shard);
  }
}
