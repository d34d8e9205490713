/**
 * Lays out a tree: folders, then files, then symbolic links, so that nothing is ever created through a link (REAPI-74).
 * Files are hard links to the cache if actions run as another user, who cannot change them; otherwise copies
 * (REAPI-72). Whole folders kept from an earlier action are moved in instead, or are there already.
 */
import { chmodSync, chownSync, constants, copyFileSync, linkSync, mkdirSync, symlinkSync, utimesSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { digestSizeBytes } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { NodeProperties } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { BlobStore } from "#blobs/store.ts";
import { Pace } from "#worker/visits/pace.ts";
import { removeFolder } from "#worker/sandbox/folders/remove-folder.ts";
import { isAsLaid, type KeptFolders, type LaidFolder } from "./kept-folders.ts";
import { canStay, LeftInputs, type LaidInputs, type Leaving } from "./left-inputs.ts";
import type { LinkCache, MadeFile } from "./link-cache.ts";
import type { DirectorySource, FileEntry, FolderEntry, LinkEntry, Part, Tree, Trees } from "./tree.ts";

export type StagePorts = {
  readonly trees: Trees;
  readonly links: LinkCache;
  /** As the action's tenant sees it: blobs of other tenants are missing (B5). */
  readonly blobs: BlobStore;
  /** Where directories come from; by default, the blobs. */
  readonly directories?: DirectorySource;
  /** Folders to be reused, where they can be kept. */
  readonly kept?: KeptFolders | undefined;
};

export type StageTarget = {
  readonly root: string;
  /** The user that will own the folders. */
  readonly uid: number | undefined;
  /** "link" only if actions do not run as the owner of the cache's files. */
  readonly files: "link" | "copy";
  /** Folders in the root, which has nothing else in it; already checked. */
  readonly left?: LeftInputs | undefined;
};

/** A folder wanted whole: only the action itself may change anything below it. */
type Whole = { readonly folder: FolderEntry; readonly index: number };

type Laid = {
  readonly laid: LaidFolder;
  readonly path: string;
  /** Kept from an earlier action. */
  readonly isTaken: boolean;
};

export class Layout implements LaidInputs {
  areAsFound = true;
  readonly #tree: Tree;
  readonly #target: StageTarget;
  readonly #ports: StagePorts;
  readonly #laid: Laid[] = [];
  readonly #pace = new Pace();
  /** By path: folders that are wanted and already there. */
  readonly #found = new Map<string, LaidFolder>();
  /** Everything in the root is in a whole folder. */
  #areAllWhole = false;

  constructor(tree: Tree, target: StageTarget, ports: StagePorts) {
    this.#tree = tree;
    this.#target = target;
    this.#ports = ports;
  }

  /** Also makes the folders in `more`. `isTouched` tells which folders outputs go into. */
  async make(more: readonly string[], isTouched: (path: string) => boolean): Promise<void> {
    const { root, uid } = this.#target;
    const { links: cache, blobs } = this.#ports;
    await this.#find(isTouched);
    const { taken, made, areAllWhole } = await this.#folders(isTouched);
    for (const path of more) makeFolder(join(root, path), uid);
    const files = without(
      this.#tree.files,
      taken.map((folder) => folder.files),
    );
    using _held = await cache.hold(files, blobs);
    for (const file of files) {
      const copying = makeFile(file, this.#target, cache);
      if (copying) await copying;
      else if (this.#pace.isLong()) await this.#pace.rest();
    }
    const links = without(
      this.#tree.links,
      taken.map((folder) => folder.links),
    );
    for (const link of links) {
      makeLink(link, this.#target);
      if (this.#pace.isLong()) await this.#pace.rest();
    }
    for (const whole of made) this.#seal(whole);
    const isMore = more.length + files.length + links.length > 0;
    this.#areAllWhole = areAllWhole && !isMore;
    if (isMore) this.areAsFound = false;
  }

  leave(isRootSame: boolean): Leaving {
    const { kept } = this.#ports;
    const { root } = this.#target;
    const staying = new Map<string, LaidFolder>();
    let [areMoved, isNothingElse] = [false, this.#areAllWhole];
    for (const { laid, path, isTaken } of this.#laid.splice(0)) {
      const at = join(root, path);
      // A folder that was wanted only once would be in the way of the next attempt.
      if (isRootSame && isTaken && canStay(laid, path) && isAsLaid(laid, at)) staying.set(path, laid);
      else if (kept?.giveBack(laid, at)) areMoved = true;
      else isNothingElse = false;
    }
    const left = kept && staying.size > 0 ? new LeftInputs(root, staying, kept) : undefined;
    return { left, areMoved, isNothingElse };
  }

  /** Moves folders that are not wanted out of the root. */
  async #find(isTouched: (path: string) => boolean): Promise<void> {
    const { root, left } = this.#target;
    if (!left) return;
    const others = new Map(left.folders);
    for (const { path, digest } of topFolders(this.#tree)) {
      const laid = others.get(path);
      if (laid?.digest !== digest || isTouched(path)) continue;
      this.#found.set(path, laid);
      others.delete(path);
    }
    for (const [path, laid] of others) {
      this.areAsFound = false;
      const at = join(root, path);
      if (!this.#ports.kept?.giveBack(laid, at)) await removeFolder(at);
    }
  }

  /** Moves kept folders in, and makes the others. */
  async #folders(isTouched: (path: string) => boolean) {
    const { folders } = this.#tree;
    const { root, uid, files } = this.#target;
    const canKeep = this.#ports.kept !== undefined && uid !== undefined && files === "link";
    const taken: FolderEntry[] = [];
    const made: Whole[] = [];
    let wholeEnd = 0;
    let areAllWhole = true;
    for (let index = 0; index < folders.length; index += 1) {
      const folder = folders[index] as FolderEntry;
      const isWhole = canKeep && index >= wholeEnd && !isTouched(folder.path);
      if (isWhole && (this.#take(folder, uid) ?? (await this.#removeChanged(folder)))) {
        taken.push(folder);
        index = folder.foldersEnd - 1;
      } else {
        if (isWhole) {
          made.push({ folder, index });
          wholeEnd = folder.foldersEnd;
        } else if (index >= wholeEnd) areAllWhole = false;
        this.areAsFound = false;
        makeFolder(join(root, folder.path), uid);
      }
      if (this.#pace.isLong()) await this.#pace.rest();
    }
    return { taken, made, areAllWhole };
  }

  /** Whether it is there now; undefined if a file in it was changed, and it has to be removed. */
  #take(folder: FolderEntry, uid: number): boolean | undefined {
    const { kept } = this.#ports;
    const { path, digest } = folder;
    const found = this.#found.get(path);
    const laid = found ?? kept?.take(uid, digest, join(this.#target.root, path));
    if (!found) this.areAsFound = false;
    if (!laid) return false;
    if (!kept?.areFilesAsMade(laid, this.#filesOf(folder))) return undefined;
    this.#laid.push({ laid, path, isTaken: true });
    return true;
  }

  /** The cache may have the same file: it is looked at again before the folder is made from it. */
  async #removeChanged(folder: FolderEntry): Promise<false> {
    this.#ports.links.doubt(this.#filesOf(folder));
    await removeFolder(join(this.#target.root, folder.path));
    return false;
  }

  *#filesOf({ files: { from, to } }: FolderEntry): Generator<MadeFile> {
    for (let i = from; i < to; i += 1) {
      const { path, digest, executable, properties } = this.#tree.files[i] as FileEntry;
      yield { path: join(this.#target.root, path), digest, executable, isSpecial: isSpecial(properties) };
    }
  }

  #seal({ folder, index }: Whole): void {
    const { kept } = this.#ports;
    const { root, uid } = this.#target;
    if (!kept || uid === undefined) return;
    const { path, digest, foldersEnd, files, links } = folder;
    const below = this.#tree.folders.slice(index + 1, foldersEnd).map((one) => one.path.slice(path.length + 1));
    const entries = below.length + 1 + files.to - files.from + links.to - links.from;
    const inside = this.#tree.files.slice(files.from, files.to);
    const bytes = inside.reduce((sum, file) => sum + digestSizeBytes(file.digest), 0);
    const laid = kept.seal(join(root, path), ["", ...below], { uid, digest, entries, bytes });
    this.#laid.push({ laid, path, isTaken: false });
  }
}

/** The folders directly in the root. */
function* topFolders({ folders }: Tree): Generator<FolderEntry> {
  for (let index = 0; index < folders.length; index = (folders[index] as FolderEntry).foldersEnd)
    yield folders[index] as FolderEntry;
}

/** The parts are in order, and do not overlap. */
function without<T>(all: readonly T[], parts: readonly Part[]): readonly T[] {
  if (parts.length === 0) return all;
  const left: T[] = [];
  let at = 0;
  for (const { from, to } of [...parts, { from: all.length, to: all.length }]) {
    for (; at < from; at += 1) left.push(all[at] as T);
    at = to;
  }
  return left;
}

function makeFolder(path: string, uid: number | undefined): void {
  mkdirSync(path, { mode: 0o755 });
  if (uid !== undefined) chownSync(path, uid, uid);
}

/**
 * The link is not owned by the action's user, who could otherwise change its times, which no folder's stamp would show
 * (Y3).
 */
function makeLink({ path, target: to }: LinkEntry, { root }: StageTarget): void {
  symlinkSync(to, join(root, path));
}

/** Larger files are copied in the thread pool. */
const copiedHereMax = 256 * 1024;

/** Returns a promise only if there is something to wait for. */
function makeFile(file: FileEntry, target: StageTarget, cache: LinkCache): Promise<void> | undefined {
  const from = cache.path(file.digest, file.executable);
  const to = join(target.root, file.path);
  if (target.files === "link" && !isSpecial(file.properties)) {
    try {
      linkSync(from, to);
      return undefined;
    } catch (error) {
      // An inode has a maximal number of links; across file systems none are possible.
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "EMLINK" && code !== "EXDEV")
        throw new Fault("unavailable", "stage input", { path: file.path, code }, error);
    }
  }
  const size = Number(file.digest.slice(file.digest.indexOf("/") + 1));
  if (size > copiedHereMax) return copyFile(from, to, constants.COPYFILE_FICLONE).then(() => settle(file, to));
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  settle(file, to);
  return undefined;
}

const isSpecial = (properties: NodeProperties | undefined): boolean =>
  properties?.mtime !== undefined || properties?.unixMode !== undefined;

/** REAPI-82: applies a file's node properties; without them a copy would have the current time. */
function settle({ properties, executable }: FileEntry, path: string): void {
  const mode = properties?.unixMode?.value;
  // Never writable, whatever was requested; and no special bits.
  chmodSync(path, mode === undefined ? (executable ? 0o555 : 0o444) : (mode & 0o555) | (executable ? 0o111 : 0));
  const { seconds, nanos } = properties?.mtime ?? { seconds: fixedSeconds, nanos: 0 };
  utimesSync(path, seconds + nanos / 1e9, seconds + nanos / 1e9);
}

const fixedSeconds = Date.UTC(2000, 0, 1) / 1000;
