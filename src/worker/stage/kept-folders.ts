/**
 * Folders of inputs that were laid out for an action and left unchanged: moved into the next action's root if that
 * wants the same, instead of being deleted and linked again. Also counts what is kept elsewhere.
 *
 * Y3 A folder is reused only if nothing in it has changed since it was laid out. Whatever an action does to a folder,
 * to its names, mode or attributes, changes that folder's ctime, which no process can set. It is kept for the same
 * user: either here, where no action reaches it, and checked before it is moved here; or in place (left-inputs.ts), and
 * checked again when that root is taken. Its files are hard links that an action cannot write to; what changes them
 * nevertheless (a disk, an operator) is noticed when the folder is taken: each is looked at, now and then, as those of
 * the link cache are.
 */
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { Digest } from "#base/digest.ts";
import { removeFolder } from "#worker/sandbox/folders/remove-folder.ts";
import { checkedForMs, isFileAsMade, type MadeFile } from "./link-cache.ts";
import { isAsStamped, stampOf, tellsChanges, type Stamp } from "#worker/stamp.ts";

/** A folder with everything below it, as it was laid out. */
export type LaidFolder = {
  readonly uid: number;
  readonly digest: Digest;
  /** Files, links and folders, including itself. */
  readonly entries: number;
  readonly bytes: number;
  /** Of the folders in it, by their paths below it; "" is itself. */
  readonly stamps: Map<string, Stamp>;
  /** When its files were looked at, by this process's own clock. */
  checkedMs: number;
};

/** What takes space until it is released or dropped. */
export type Held = { readonly entries: number; readonly bytes: number; readonly drop: () => void };

type Kept = { readonly laid: LaidFolder; readonly path: string; readonly held: Held };

export type KeptFoldersOptions = {
  readonly folder: string;
  readonly entriesMax?: number;
  /** Kept files may no longer be in the cache that they were linked from, and then take space of their own. */
  readonly bytesMax: number;
  readonly log?: (line: string) => void;
  /** For so long files that were looked at count as unchanged. */
  readonly checkedForMs?: number;
};

const entriesMaxDefault = 200_000;
/** Copies of one folder for one user: the last action still uses its own while the next is laid out. */
const copiesMax = 3;

export class KeptFolders {
  readonly #folder: string;
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  readonly #log: (line: string) => void;
  readonly #checkedForMs: number;
  /** Least recently kept first. */
  readonly #held = new Set<Held>();
  readonly #copies = new Map<string, Kept[]>();
  #entries = 0;
  #bytes = 0;
  #lastNo = 0;

  private constructor(options: KeptFoldersOptions) {
    const { folder, entriesMax = entriesMaxDefault, bytesMax, log = () => {} } = options;
    this.#folder = folder;
    this.#entriesMax = entriesMax;
    this.#bytesMax = bytesMax;
    this.#log = log;
    this.#checkedForMs = options.checkedForMs ?? checkedForMs;
  }

  /** Undefined if the file system's times are too coarse to show that a folder was changed. */
  static async open(options: KeptFoldersOptions): Promise<KeptFolders | undefined> {
    const { folder } = options;
    // The stamps of folders that an earlier process kept are lost.
    await removeFolder(folder);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return tellsChanges(folder) ? new KeptFolders(options) : undefined;
  }

  get entries(): number {
    return this.#entries;
  }

  /** Moves a kept folder to where it is wanted. */
  take(uid: number, digest: Digest, to: string): LaidFolder | undefined {
    const kept = this.#copies.get(keyOf(uid, digest))?.at(-1);
    if (!kept) return undefined;
    this.#forget(kept);
    try {
      renameSync(kept.path, to);
      // The move changes the folder itself and nothing in it.
      kept.laid.stamps.set("", stampOf(to));
      return kept.laid;
    } catch (error) {
      this.#log(`take ${kept.path}: ${String(error)}`);
      return undefined;
    }
  }

  /** Takes its stamps, just after it was laid out: from here on every change shows. */
  seal(at: string, folders: readonly string[], about: Omit<LaidFolder, "stamps" | "checkedMs">): LaidFolder {
    const stamps = new Map(folders.map((path) => [path, stampOf(join(at, path))]));
    return { ...about, stamps, checkedMs: performance.now() };
  }

  /** Whether its files, which were linked from the cache, are as they were made. */
  areFilesAsMade(laid: LaidFolder, files: Iterable<MadeFile>): boolean {
    const nowMs = performance.now();
    if (nowMs - laid.checkedMs < this.#checkedForMs) return true;
    for (const file of files) if (!isFileAsMade(file)) return false;
    laid.checkedMs = nowMs;
    return true;
  }

  /** To be called when no process that could change it is alive. False, and left where it is, if it has changed. */
  giveBack(laid: LaidFolder, at: string): boolean {
    const key = keyOf(laid.uid, laid.digest);
    const copies = this.#copies.get(key) ?? [];
    if (copies.length >= copiesMax || this.#isTooMuch(laid) || !isAsLaid(laid, at)) return false;
    this.#lastNo += 1;
    const path = join(this.#folder, String(this.#lastNo));
    try {
      renameSync(at, path);
    } catch (error) {
      this.#log(`keep ${at}: ${String(error)}`);
      return false;
    }
    const { entries, bytes } = laid;
    const kept: Kept = { laid, path, held: { entries, bytes, drop: () => this.#remove(kept) } };
    this.#copies.set(key, copies);
    copies.push(kept);
    return this.hold(kept.held);
  }

  /** Counts it until it is released; drops the least recently kept ones for it. False if it is too large. */
  hold(held: Held): boolean {
    if (this.#isTooMuch(held)) return false;
    this.#held.add(held);
    this.#entries += held.entries;
    this.#bytes += held.bytes;
    for (const oldest of this.#held) {
      if (this.#entries <= this.#entriesMax && this.#bytes <= this.#bytesMax) break;
      this.letGo(oldest);
      oldest.drop();
    }
    return true;
  }

  letGo(held: Held): void {
    if (!this.#held.delete(held)) return;
    this.#entries -= held.entries;
    this.#bytes -= held.bytes;
  }

  #isTooMuch({ entries, bytes }: Omit<Held, "drop">): boolean {
    return entries > this.#entriesMax || bytes > this.#bytesMax;
  }

  #remove(kept: Kept): void {
    this.#forget(kept);
    removeFolder(kept.path).catch((error: unknown) => this.#log(`remove ${kept.path}: ${String(error)}`));
  }

  #forget(kept: Kept): void {
    const key = keyOf(kept.laid.uid, kept.laid.digest);
    const others = (this.#copies.get(key) ?? []).filter((copy) => copy !== kept);
    if (others.length > 0) this.#copies.set(key, others);
    else this.#copies.delete(key);
    this.letGo(kept.held);
  }
}

const keyOf = (uid: number, digest: Digest): string => `${uid} ${digest}`;

export function isAsLaid({ stamps }: LaidFolder, at: string): boolean {
  for (const [path, stamp] of stamps) if (!isAsStamped(path === "" ? at : join(at, path), stamp)) return false;
  return true;
}
