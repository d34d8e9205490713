/**
 * Folders of inputs that stay in a root while it is unused: the next attempt that gets this root and wants the same
 * folders at the same names uses them in place. Not trusted before they are checked when the root is taken (Y3).
 */
import { join } from "node:path";
import { isAsLaid, type Held, type KeptFolders, type LaidFolder } from "./kept-folders.ts";

/**
 * Small folders only: making a copy in each root is cheaper than moving one, and every staying folder is checked twice.
 */
const entriesMax = 32;

/** Small folders directly in the root that were wanted more than once. */
export const canStay = ({ entries }: LaidFolder, path: string): boolean => entries <= entriesMax && !path.includes("/");

/** Inputs as they were laid out in a root. */
export type LaidInputs = {
  /** All of them were there already: nothing was added to the root, and nothing removed. */
  readonly areAsFound: boolean;
  /**
   * To be called when all processes are dead and no reader uses the root: keeps the unchanged folders. They stay in the
   * root only if the root itself is unchanged.
   */
  leave(isRootSame: boolean): Leaving;
};

export type Leaving = {
  readonly left: LeftInputs | undefined;
  /** Some were moved out of the root. */
  readonly areMoved: boolean;
  /** Nothing else that was staged is left in the root. */
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

  /** Counts them as kept until they are released, or dropped to free space. False if they are too large. */
  hold(drop: () => void): boolean {
    let [entries, bytes] = [0, 0];
    for (const laid of this.folders.values()) {
      entries += laid.entries;
      bytes += laid.bytes;
    }
    this.#held = { entries, bytes, drop };
    return this.#kept.hold(this.#held);
  }

  /** The next attempt took them, or they are gone. */
  letGo(): void {
    if (this.#held) this.#kept.letGo(this.#held);
    this.#held = undefined;
  }
}
