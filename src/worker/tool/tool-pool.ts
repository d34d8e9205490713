/**
 * Which tools there are on this node, who has one, and which one has to go. Pure: time comes in, and whoever asks does
 * what is said.
 *
 * O2 A tool is lent to one request at a time, and only for the key that it was started for.
 * O3 There are never more than `toolsMax`: one that is started in another's place waits for that one's end.
 */
export type PoolOptions = {
  readonly toolsMax: number;
  /** How long one may wait for its next request. */
  readonly idleMs: number;
};

type Place = { readonly key: string; state: PlaceState };

type PlaceState =
  | { readonly kind: "lent" }
  | { readonly kind: "idle"; readonly sinceMs: number }
  /** Its process has to be dead before the one that it was promised to can have its place. */
  | { readonly kind: "ending"; readonly isPromised: boolean };

export type Taken =
  | { readonly kind: "kept"; readonly id: number }
  /** To be started, once the one that it is to replace is gone. */
  | { readonly kind: "new"; readonly id: number; readonly ends: number | undefined }
  /** All are lent. */
  | { readonly kind: "none" };

export class ToolPool {
  readonly #options: PoolOptions;
  readonly #places = new Map<number, Place>();
  #lastId = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  take(key: string): Taken {
    // The one that was used last is the warmest, and lets the others come of age.
    const [mine] = this.#idle().filter(([, place]) => place.key === key);
    if (mine) {
      mine[1].state = { kind: "lent" };
      return { kind: "kept", id: mine[0] };
    }
    const ends = this.#isFull ? (this.#ending() ?? this.#idle().at(-1)?.[0]) : undefined;
    if (this.#isFull && ends === undefined) return { kind: "none" };
    if (ends !== undefined) this.#set(ends, { kind: "ending", isPromised: true });
    this.#lastId += 1;
    this.#places.set(this.#lastId, { key, state: { kind: "lent" } });
    return { kind: "new", id: this.#lastId, ends };
  }

  giveBack(id: number, nowMs: number): void {
    const place = this.#places.get(id);
    if (place?.state.kind === "lent") place.state = { kind: "idle", sinceMs: nowMs };
  }

  /** It is not lent any more, but there until it is `gone`. */
  end(id: number): void {
    if (this.#places.get(id)?.state.kind !== "ending") this.#set(id, { kind: "ending", isPromised: false });
  }

  gone(id: number): void {
    this.#places.delete(id);
  }

  /** Those that have waited for too long; they are to be ended. */
  overdue(nowMs: number): readonly number[] {
    const isOld = ({ state }: Place): boolean => state.kind === "idle" && nowMs - state.sinceMs >= this.#options.idleMs;
    return [...this.#places].filter(([, place]) => isOld(place)).map(([id]) => id);
  }

  /** All that wait. */
  idle(): readonly number[] {
    return this.#idle().map(([id]) => id);
  }

  get counts(): { readonly lent: number; readonly idle: number } {
    return { idle: this.#idle().length, lent: this.#count(({ kind }) => kind === "lent") };
  }

  /** The most recently used first. */
  #idle(): readonly (readonly [number, Place])[] {
    const since = ({ state }: Place): number => (state.kind === "idle" ? state.sinceMs : 0);
    return [...this.#places]
      .filter(([, { state }]) => state.kind === "idle")
      .toSorted(([oneId, one], [otherId, other]) => since(other) - since(one) || otherId - oneId);
  }

  #ending(): number | undefined {
    return [...this.#places].find(([, { state }]) => state.kind === "ending" && !state.isPromised)?.[0];
  }

  /** Places that were promised are counted for those that they were promised to. */
  get #isFull(): boolean {
    return this.#count((state) => state.kind !== "ending" || !state.isPromised) >= this.#options.toolsMax;
  }

  #count(isCounted: (state: PlaceState) => boolean): number {
    return [...this.#places.values()].filter(({ state }) => isCounted(state)).length;
  }

  #set(id: number, state: PlaceState): void {
    const place = this.#places.get(id);
    if (place) place.state = state;
  }
}
