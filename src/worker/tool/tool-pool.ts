/**
 * Which tools exist on this node, who uses one, and which one must end. Pure: time is passed in, and the caller carries
 * out the decisions.
 *
 * O2 A tool is lent to one request at a time, and only for the key that it was started for.
 * O3 There are never more than `toolsMax`: one that replaces another waits for that one's end.
 */
export type PoolOptions = {
  readonly toolsMax: number;
  /** How long a tool may wait for its next request. */
  readonly idleMs: number;
};

type ToolSlot = { readonly key: string; state: SlotState };

type SlotState =
  | { readonly kind: "lent" }
  | { readonly kind: "idle"; readonly sinceMs: number }
  /** Its process must be dead before its successor can start. */
  | { readonly kind: "ending"; readonly isPromised: boolean };

export type Taken =
  | { readonly kind: "kept"; readonly id: number }
  /** To be started, once the one that it replaces is gone. */
  | { readonly kind: "new"; readonly id: number; readonly ends: number | undefined }
  /** All are lent. */
  | { readonly kind: "none" };

export class ToolPool {
  readonly #options: PoolOptions;
  readonly #slots = new Map<number, ToolSlot>();
  #lastId = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  take(key: string): Taken {
    // The most recently used one is the warmest, and the others may expire.
    const [mine] = this.#idle().filter(([, slot]) => slot.key === key);
    if (mine) {
      mine[1].state = { kind: "lent" };
      return { kind: "kept", id: mine[0] };
    }
    const ends = this.#isFull ? (this.#ending() ?? this.#idle().at(-1)?.[0]) : undefined;
    if (this.#isFull && ends === undefined) return { kind: "none" };
    if (ends !== undefined) this.#set(ends, { kind: "ending", isPromised: true });
    this.#lastId += 1;
    this.#slots.set(this.#lastId, { key, state: { kind: "lent" } });
    return { kind: "new", id: this.#lastId, ends };
  }

  giveBack(id: number, nowMs: number): void {
    const slot = this.#slots.get(id);
    if (slot?.state.kind === "lent") slot.state = { kind: "idle", sinceMs: nowMs };
  }

  /** It is not lent any more, but exists until it is `gone`. */
  end(id: number): void {
    if (this.#slots.get(id)?.state.kind !== "ending") this.#set(id, { kind: "ending", isPromised: false });
  }

  gone(id: number): void {
    this.#slots.delete(id);
  }

  /** Tools that have waited for too long; the caller ends them. */
  overdue(nowMs: number): readonly number[] {
    const isOld = ({ state }: ToolSlot): boolean =>
      state.kind === "idle" && nowMs - state.sinceMs >= this.#options.idleMs;
    return [...this.#slots].filter(([, slot]) => isOld(slot)).map(([id]) => id);
  }

  /** All that wait. */
  idle(): readonly number[] {
    return this.#idle().map(([id]) => id);
  }

  get counts(): { readonly lent: number; readonly idle: number } {
    return { idle: this.#idle().length, lent: this.#count(({ kind }) => kind === "lent") };
  }

  /** Most recently used first. */
  #idle(): readonly (readonly [number, ToolSlot])[] {
    const since = ({ state }: ToolSlot): number => (state.kind === "idle" ? state.sinceMs : 0);
    return [...this.#slots]
      .filter(([, { state }]) => state.kind === "idle")
      .toSorted(([oneId, one], [otherId, other]) => since(other) - since(one) || otherId - oneId);
  }

  #ending(): number | undefined {
    return [...this.#slots].find(([, { state }]) => state.kind === "ending" && !state.isPromised)?.[0];
  }

  /** Reserved slots count for their successors. */
  get #isFull(): boolean {
    return this.#count((state) => state.kind !== "ending" || !state.isPromised) >= this.#options.toolsMax;
  }

  #count(isCounted: (state: SlotState) => boolean): number {
    return [...this.#slots.values()].filter(({ state }) => isCounted(state)).length;
  }

  #set(id: number, state: SlotState): void {
    const slot = this.#slots.get(id);
    if (slot) slot.state = state;
  }
}
