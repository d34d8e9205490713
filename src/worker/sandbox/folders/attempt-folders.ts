/**
 * Folders of attempts, made when one is wanted. To make and to remove one takes twenty calls and several commits of
 * the file system, so one that was left as it was is emptied, but for inputs that the next may want, and used again for
 * the same user's next attempt.
 *
 * Z1 A folder is used again only where everything that what ran could reach is new, or the same as before by its
 *    stamp, inputs that lie in it as well; that is looked at when it is taken, because only then nothing else of its
 *    user can be alive. A root is stamped again only where it is seen after that to hold nothing else.
 */
import { mkdirSync } from "node:fs";
import type { LaidInputs, LeftInputs } from "#worker/stage/left-inputs.ts";
import { isAsStamped, stampOf, tellsChanges } from "#worker/stamp.ts";
import { attemptsIn, makeAttemptFolder, type AttemptFolder } from "./attempt-folder.ts";
import { blank, clear, type FileName, type Known } from "./clear-folder.ts";
import { removeFolder } from "./remove-folder.ts";

export type AttemptFoldersOptions = {
  readonly home: string;
  /** What runs cannot reach the file that its sandbox writes to. */
  readonly boxed: boolean;
  readonly log: (line: string) => void;
  /** For each user: one is still being told of while the next is at work. */
  readonly sparesMax?: number;
};

const sparesMaxDefault = 3;

export class AttemptFolders {
  readonly #options: AttemptFoldersOptions;
  /** Where the file system's clock is too coarse, nobody could tell what was changed. */
  readonly #areReused: boolean;
  readonly #reached: readonly FileName[];
  readonly #known = new Map<AttemptFolder, Known>();
  readonly #spares = new Map<number, AttemptFolder[]>();
  readonly #distrusted = new Set<number>();
  readonly #going = new Set<Promise<void>>();

  constructor(options: AttemptFoldersOptions) {
    this.#options = options;
    this.#reached = options.boxed ? ["stdout", "stderr"] : ["stdout", "stderr", "status"];
    mkdirSync(attemptsIn(options.home), { recursive: true, mode: 0o711 });
    this.#areReused = tellsChanges(attemptsIn(options.home));
  }

  /** Nothing of the user's is alive. */
  take(uid: number | undefined): AttemptFolder {
    if (uid === undefined || !this.#areReused || this.#distrusted.has(uid))
      return makeAttemptFolder(this.#options.home, uid);
    const spares = this.#spares.get(uid) ?? [];
    for (let spare = spares.pop(); spare; spare = spares.pop()) {
      if (this.#isAsLeft(spare)) return spare;
      this.remove(spare);
    }
    return this.#made(uid);
  }

  #made(uid: number): AttemptFolder {
    const folder = makeAttemptFolder(this.#options.home, uid);
    const files = new Map(this.#reached.map((name) => [name, stampOf(folder[name])]));
    this.#known.set(folder, { uid, files, whole: stampOf(folder.path), root: stampOf(folder.root) });
    return folder;
  }

  /**
   * One that the user's next attempt will probably get, while the last one is still at work. Undefined where folders
   * are not used again.
   */
  ahead(uid: number): AttemptFolder | undefined {
    if (!this.#areReused || this.#distrusted.has(uid)) return undefined;
    return this.#spares.get(uid)?.pop() ?? this.#made(uid);
  }

  /** Whether that one can be had now that nothing of the user's is alive. If not, it is gone. */
  isStillGood(folder: AttemptFolder, uid: number): boolean {
    if (!this.#distrusted.has(uid) && this.#isAsLeft(folder)) return true;
    // Unless it had to go already.
    if (this.#known.has(folder)) this.remove(folder);
    return false;
  }

  /** What lies in one that was taken: from here on it is whoever's asks. */
  takeLeft(folder: AttemptFolder): LeftInputs | undefined {
    const known = this.#known.get(folder);
    const left = known?.left;
    left?.letGo();
    if (known) known.left = undefined;
    return left;
  }

  /** Its inputs are there: from here on every change to the root itself shows. */
  seal(folder: AttemptFolder): void {
    const known = this.#known.get(folder);
    if (known) known.root = stampOf(folder.root);
  }

  /**
   * Takes inputs out of it that are used elsewhere, and notes which stay. Once nothing of what ran is alive, and before
   * anything else of its user can be.
   */
  leaveInputs(folder: AttemptFolder, inputs: LaidInputs): void {
    const known = this.#known.get(folder);
    const isSame = known?.root !== undefined && isAsStamped(folder.root, known.root);
    const { left, areMoved, isNothingElse } = inputs.leave(isSame);
    if (!known) return;
    known.left = left;
    if (!isSame) known.root = undefined;
    else if (areMoved) known.root = stampOf(folder.root);
    known.isClear = isSame && isNothingElse;
  }

  /** Once nobody looks at it any more. */
  giveBack(folder: AttemptFolder, hasPrinted = true): void {
    const known = this.#known.get(folder);
    if (!known || this.#distrusted.has(known.uid)) return this.remove(folder);
    // It is looked at when it is taken; what was done to it meanwhile shows there, and here there is nothing to do.
    const isDone = known.isClear && !hasPrinted;
    this.#follow(folder, async () => {
      const isGood = isDone || (await clear(folder, known));
      known.isClear = false;
      if (isGood && !known.files.has("status")) blank(folder.status);
      if (!isGood || !this.#keep(folder, known)) this.remove(folder);
    });
  }

  /** False when there are enough, or what lies in it is too much. */
  #keep(folder: AttemptFolder, { uid, left }: Known): boolean {
    const spares = this.#spares.get(uid) ?? [];
    const sparesMax = this.#distrusted.has(uid) ? 0 : (this.#options.sparesMax ?? sparesMaxDefault);
    if (spares.length >= sparesMax) return false;
    if (left?.hold(() => this.#evict(folder, uid)) === false) return false;
    spares.push(folder);
    this.#spares.set(uid, spares);
    return true;
  }

  /** What lies in it has to go. It may be one that was given out ahead: whoever has it is told when they ask. */
  #evict(folder: AttemptFolder, uid: number): void {
    const spares = this.#spares.get(uid) ?? [];
    const at = spares.indexOf(folder);
    if (at >= 0) spares.splice(at, 1);
    this.remove(folder);
  }

  /** Something of the user's may be alive, and stay so, and know where its folders are: none is used again. */
  distrust(uid: number | undefined): void {
    if (uid === undefined) return;
    this.#distrusted.add(uid);
    this.#drop(uid);
  }

  remove(folder: AttemptFolder): void {
    this.#known.get(folder)?.left?.letGo();
    this.#known.delete(folder);
    this.#follow(folder, () => removeFolder(folder.path));
  }

  /** Nothing is left to be done. */
  async settled(): Promise<void> {
    while (this.#going.size > 0) await Promise.all(this.#going);
  }

  /** Spares are gone. */
  async close(): Promise<void> {
    await this.settled();
    for (const uid of this.#spares.keys()) this.#drop(uid);
    await this.settled();
  }

  #drop(uid: number): void {
    for (const spare of this.#spares.get(uid)?.splice(0) ?? []) this.remove(spare);
  }

  #isAsLeft(folder: AttemptFolder): boolean {
    const { whole, root, files, left } = this.#known.get(folder) ?? {};
    return (
      whole !== undefined &&
      root !== undefined &&
      isAsStamped(folder.path, whole) &&
      isAsStamped(folder.root, root) &&
      files?.entries().every(([name, stamp]) => isAsStamped(folder[name], stamp)) === true &&
      left?.isAsLaid() !== false
    );
  }

  #follow(folder: AttemptFolder, work: () => Promise<void>): void {
    const going = work()
      .catch((error: unknown) => {
        this.#options.log(`clear ${folder.path}: ${String(error)}`);
        // Whoever starts next takes it away.
        this.#known.get(folder)?.left?.letGo();
        this.#known.delete(folder);
      })
      .finally(() => this.#going.delete(going));
    this.#going.add(going);
  }
}
