/**
 * Folders of attempts, made when one is wanted. To make and to remove one takes twenty calls and several commits of
 * the file system, so one that was left as it was is emptied and used again for the same user's next attempt.
 *
 * Z1 A folder is used again only where everything that what ran could reach is new, or the same as before by its
 *    stamp; that is looked at when it is taken, because only then nothing else of its user can be alive.
 */
import { closeSync, fstatSync, ftruncateSync, mkdirSync, openSync, rmdirSync, unlinkSync, writeSync } from "node:fs";
import { isAsStamped, stampOf, tellsChanges, type Stamp } from "#worker/stamp.ts";
import { attemptsIn, makeAttemptFolder, makeFile, makeRoot, type AttemptFolder } from "./attempt-folder.ts";
import { emptyFolder, removeFolder } from "./remove-folder.ts";

export type AttemptFoldersOptions = {
  readonly home: string;
  /** What runs cannot reach the file that its sandbox writes to. */
  readonly boxed: boolean;
  readonly log: (line: string) => void;
  /** For each user: one is still being told of while the next is at work. */
  readonly sparesMax?: number;
};

type FileName = "stdout" | "stderr" | "status";

type Known = {
  readonly uid: number;
  readonly files: Map<FileName, Stamp>;
  whole: Stamp;
  /** When it is empty, with its inputs, or without those that were taken; undefined when it was changed. */
  root: Stamp | undefined;
  /** There is nothing in the root, as long as it is as stamped. */
  isEmpty?: boolean;
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
    this.remove(folder);
    return false;
  }

  /** Its inputs are there: from here on every change to the root itself shows. */
  seal(folder: AttemptFolder): void {
    const known = this.#known.get(folder);
    if (known) known.root = stampOf(folder.root);
  }

  /**
   * Takes inputs out of it that are used elsewhere, once nothing of what ran is alive, and before anything else of its
   * user can be.
   */
  takeInputs(folder: AttemptFolder, take: () => boolean): void {
    const known = this.#known.get(folder);
    const isSame = known?.root !== undefined && isAsStamped(folder.root, known.root);
    const isNoneLeft = take();
    if (!known) return;
    known.root = isSame ? stampOf(folder.root) : undefined;
    known.isEmpty = isSame && isNoneLeft;
  }

  /** Once nobody looks at it any more. */
  giveBack(folder: AttemptFolder, hasPrinted = true): void {
    const known = this.#known.get(folder);
    if (known?.isEmpty && !hasPrinted && !this.#distrusted.has(known.uid)) return this.#giveBackEmpty(folder, known);
    if (!known || this.#distrusted.has(known.uid) || !isAsStamped(folder.path, known.whole)) return this.remove(folder);
    const isSame = known.root !== undefined && isAsStamped(folder.root, known.root);
    this.#follow(folder, async () => {
      await emptyFolder(folder.root);
      clear(folder, known, isSame);
      if (!this.#keep(folder, known.uid)) this.remove(folder);
    });
  }

  /** It is looked at when it is taken; what was done to it meanwhile shows there, and here there is nothing to do. */
  #giveBackEmpty(folder: AttemptFolder, known: Known): void {
    known.isEmpty = false;
    this.#follow(folder, async () => {
      if (!known.files.has("status")) blank(folder.status);
      if (!this.#keep(folder, known.uid)) this.remove(folder);
    });
  }

  /** False when there are enough. */
  #keep(folder: AttemptFolder, uid: number): boolean {
    const spares = this.#spares.get(uid) ?? [];
    if (spares.length >= (this.#options.sparesMax ?? sparesMaxDefault)) return false;
    spares.push(folder);
    this.#spares.set(uid, spares);
    return true;
  }

  /** Something of the user's may be alive, and stay so, and know where its folders are: none is used again. */
  distrust(uid: number | undefined): void {
    if (uid === undefined) return;
    this.#distrusted.add(uid);
    this.#drop(uid);
  }

  remove(folder: AttemptFolder): void {
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
    const { whole, root, files } = this.#known.get(folder) ?? {};
    return (
      whole !== undefined &&
      root !== undefined &&
      isAsStamped(folder.path, whole) &&
      isAsStamped(folder.root, root) &&
      files?.entries().every(([name, stamp]) => isAsStamped(folder[name], stamp)) === true
    );
  }

  #follow(folder: AttemptFolder, work: () => Promise<void>): void {
    const going = work()
      .catch((error: unknown) => {
        this.#options.log(`clear ${folder.path}: ${String(error)}`);
        // Whoever starts next takes it away.
        this.#known.delete(folder);
      })
      .finally(() => this.#going.delete(going));
    this.#going.add(going);
  }
}

/** What is not as it was is made anew. */
function clear(folder: AttemptFolder, known: Known, isRootSame: boolean): void {
  const { uid, files } = known;
  if (!isRootSame) {
    rmdirSync(folder.root);
    makeRoot(folder, uid);
  }
  for (const [name, stamp] of files) {
    if (isAsStamped(folder[name], stamp)) continue;
    unlinkSync(folder[name]);
    makeFile(folder[name], uid);
    files.set(name, stampOf(folder[name]));
  }
  if (!files.has("status")) blank(folder.status);
  known.root = stampOf(folder.root);
  known.whole = stampOf(folder.path);
}

const statusBytesMax = 4_096;

/**
 * Only the sandbox itself can write to it. It is written over with nothing, not emptied: some file systems (ext4) would
 * put it on the disk the next time.
 */
function blank(path: string): void {
  const fd = openSync(path, "r+");
  try {
    const { size } = fstatSync(fd);
    if (size > statusBytesMax) ftruncateSync(fd, 0);
    else if (size > 0) writeSync(fd, Buffer.alloc(size, " "), 0, size, 0);
  } finally {
    closeSync(fd);
  }
}
