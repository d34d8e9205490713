/**
 * Folders of attempts, made on demand. Making and deleting one takes twenty calls and several commits of the file
 * system, so an unchanged one is emptied, except for inputs that the next attempt may want, and reused for the same
 * user's next attempt.
 *
 * Z1 A folder is reused only if everything that the command could reach is new, or unchanged by its stamp, including
 * inputs that stay in it. That is checked when it is taken, because only then no other process of its user can be
 * alive. A root is stamped again only after it was seen to hold nothing else.
 */
import { mkdirSync } from "node:fs";
import type { LaidInputs, LeftInputs } from "#worker/stage/left-inputs.ts";
import { isAsStamped, stampOf, tellsChanges } from "#worker/stamp.ts";
import { attemptsIn, makeAttemptFolder, type AttemptFolder } from "./attempt-folder.ts";
import { blank, clear, type FileName, type Known } from "./clear-folder.ts";
import { removeFolder } from "./remove-folder.ts";

export type AttemptFoldersOptions = {
  readonly home: string;
  /** Whether commands cannot reach the file that their sandbox writes to. */
  readonly boxed: boolean;
  readonly log: (line: string) => void;
  /** Per user: one attempt may still be reported while the next is running. */
  readonly sparesMax?: number;
};

const sparesMaxDefault = 3;

export class AttemptFolders {
  readonly #options: AttemptFoldersOptions;
  /** False if the file system's times are too coarse to show what was changed. */
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

  /** No process of the user may be alive. */
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
   * A folder that the user's next attempt will probably get, while the last one is still running. Undefined if folders
   * are not reused.
   */
  ahead(uid: number): AttemptFolder | undefined {
    if (!this.#areReused || this.#distrusted.has(uid)) return undefined;
    return this.#spares.get(uid)?.pop() ?? this.#made(uid);
  }

  /** Whether that folder can be used now that no process of the user is alive. If not, it is deleted. */
  isStillGood(folder: AttemptFolder, uid: number): boolean {
    if (!this.#distrusted.has(uid) && this.#isAsLeft(folder)) return true;
    // It may have been deleted already.
    if (this.#known.has(folder)) this.remove(folder);
    return false;
  }

  /** The inputs left in a folder that was taken; from here on they belong to the caller. */
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
   * Moves inputs out of it that are used elsewhere, and notes which ones stay. To be called when all processes of the
   * run are dead, and before any other process of its user starts.
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

  /** To be called when no reader uses it any more. */
  giveBack(folder: AttemptFolder, hasPrinted = true): void {
    const known = this.#known.get(folder);
    if (!known || this.#distrusted.has(known.uid)) return this.remove(folder);
    // It is checked when it is taken; changes until then show there, so nothing needs to be done here.
    const isDone = known.isClear && !hasPrinted;
    this.#follow(folder, async () => {
      const isGood = isDone || (await clear(folder, known));
      known.isClear = false;
      if (isGood && !known.files.has("status")) blank(folder.status);
      if (!isGood || !this.#keep(folder, known)) this.remove(folder);
    });
  }

  /** False if there are enough, or if its inputs are too large. */
  #keep(folder: AttemptFolder, { uid, left }: Known): boolean {
    const spares = this.#spares.get(uid) ?? [];
    const sparesMax = this.#distrusted.has(uid) ? 0 : (this.#options.sparesMax ?? sparesMaxDefault);
    if (spares.length >= sparesMax) return false;
    if (left?.hold(() => this.#evict(folder, uid)) === false) return false;
    spares.push(folder);
    this.#spares.set(uid, spares);
    return true;
  }

  /** Its inputs must be dropped. If it was handed out ahead, `isStillGood` returns false for it. */
  #evict(folder: AttemptFolder, uid: number): void {
    const spares = this.#spares.get(uid) ?? [];
    const at = spares.indexOf(folder);
    if (at >= 0) spares.splice(at, 1);
    this.remove(folder);
  }

  /** A process of the user may stay alive and know its folders: none is reused. */
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

  /** Resolves when no work is pending. */
  async settled(): Promise<void> {
    while (this.#going.size > 0) await Promise.all(this.#going);
  }

  /** Deletes the spare folders. */
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
        // The next start deletes it.
        this.#known.get(folder)?.left?.letGo();
        this.#known.delete(folder);
      })
      .finally(() => this.#going.delete(going));
    this.#going.add(going);
  }
}
