/**
 * Folders of inputs that stay in a root while nobody has it: the next attempt that gets this root, and wants the same
 * at the same name, uses them as they lie. Not to be trusted before they were looked at when the root is taken (Y3).
 */
import { join } from "node:path";
import { isAsLaid, type Held, type KeptFolders, type LaidFolder } from "./kept-folders.ts";

/** A copy in each root is made sooner than it is moved so many times; and it is looked at twice as often. */
const entriesMax = 32;

/** Those that were wanted more than once, and are small, directly in the root. */
export const canStay = ({ entries }: LaidFolder, path: string): boolean => entries <= entriesMax && !path.includes("/");

/** Inputs as they were laid out in a root. */
export type LaidInputs = {
  /** All of them were there: nothing was put into the root, and nothing was taken out of it. */
  readonly areAsFound: boolean;
  /**
   * Once nothing of what ran is alive and nobody looks at the root any more: what was left as it was is kept. In the
   * root itself only if that is as it was.
   */
  leave(isRootSame: boolean): Leaving;
};

export type Leaving = {
  readonly left: LeftInputs | undefined;
  /** Some were taken out of the root. */
  readonly areMoved: boolean;
  /** Of what was staged nothing else is in the root. */
  readonly isNothingElse: boolean;
};

export class LeftInputs {
  /** By name. */
  readonly folders: ReadonlyMap<string, LaidFolder>;
  readonly #root: string;
  readonly #kept: KeptFolders;
  #held: Held | undefined;

  constructor(root: string, folders: ReadonlyMap<string, LaidFolder>, kept: KeptFolders) {
    this.#root = root;
    this.folders = folders;
    this.#kept = kept;
  }

  isAsLaid(): boolean {
    for (const [name, laid] of this.folders) if (!isAsLaid(laid, join(this.#root, name))) return false;
    return true;
  }

  /** They count as kept until they are let go, or dropped to make room. False: they are too much. */
  hold(drop: () => void): boolean {
    let [entries, bytes] = [0, 0];
    for (const laid of this.folders.values()) {
      entries += laid.entries;
      bytes += laid.bytes;
    }
    this.#held = { entries, bytes, drop };
    return this.#kept.hold(this.#held);
  }

  /** They are the next attempt's, or gone. */
  letGo(): void {
    if (this.#held) this.#kept.letGo(this.#held);
    this.#held = undefined;
  }
}
