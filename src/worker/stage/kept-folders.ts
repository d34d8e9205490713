/**
 * Folders of inputs that were laid out for an action and left by it as they were: moved into the next action's root
 * when that wants the same, instead of being taken apart and linked together again. Counts what is kept elsewhere, too.
 *
 * Y3 A folder is used again only if nothing in it has changed since it was laid out. Its files are links that what runs
 *    cannot write to; whatever it does to a folder, to its names, rights or attributes, changes that folder's ctime,
 *    which nobody can set. It is kept for the same user: either here, out of everybody's reach, and looked at before it
 *    comes here; or where it lies (left-inputs.ts), and looked at again when that root is taken.
 */
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { Digest } from "#base/digest.ts";
import { removeFolder } from "#worker/sandbox/folders/remove-folder.ts";
import { isAsStamped, stampOf, tellsChanges, type Stamp } from "#worker/stamp.ts";

/** A folder with everything below it, as it was laid out. */
export type LaidFolder = {
  readonly uid: number;
  readonly digest: Digest;
  /** Files, links and folders, itself included. */
  readonly entries: number;
  readonly bytes: number;
  /** Of the folders in it, by their paths below it; "" is itself. */
  readonly stamps: Map<string, Stamp>;
};

/** What takes room until it is let go, or has to go. */
export type Held = { readonly entries: number; readonly bytes: number; readonly drop: () => void };

type Kept = { readonly laid: LaidFolder; readonly path: string; readonly held: Held };

export type KeptFoldersOptions = {
  readonly folder: string;
  readonly entriesMax?: number;
  /** What is kept may no longer be in the cache that its files were linked from, and takes room of its own then. */
  readonly bytesMax: number;
  readonly log?: (line: string) => void;
};

const entriesMaxDefault = 200_000;
/** Of one folder for one user: the last action's is still in use when the next one is laid out. */
const copiesMax = 3;

export class KeptFolders {
  readonly #folder: string;
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  readonly #log: (line: string) => void;
  /** The least recently kept first. */
  readonly #held = new Set<Held>();
  readonly #copies = new Map<string, Kept[]>();
  #entries = 0;
  #bytes = 0;
  #lastNo = 0;

  private constructor({ folder, entriesMax = entriesMaxDefault, bytesMax, log = () => {} }: KeptFoldersOptions) {
    this.#folder = folder;
    this.#entriesMax = entriesMax;
    this.#bytesMax = bytesMax;
    this.#log = log;
  }

  /** Undefined where the file system's clock is too coarse to tell that a folder was changed. */
  static async open(options: KeptFoldersOptions): Promise<KeptFolders | undefined> {
    const { folder } = options;
    // What an earlier life kept was laid out by stamps that nobody remembers.
    await removeFolder(folder);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return tellsChanges(folder) ? new KeptFolders(options) : undefined;
  }

  get entries(): number {
    return this.#entries;
  }

  /** Moves one to where it is wanted. */
  take(uid: number, digest: Digest, to: string): LaidFolder | undefined {
    const kept = this.#copies.get(keyOf(uid, digest))?.at(-1);
    if (!kept) return undefined;
    this.#forget(kept);
    try {
      renameSync(kept.path, to);
      // Moving it is a change, of itself and of nothing in it.
      kept.laid.stamps.set("", stampOf(to));
      return kept.laid;
    } catch (error) {
      this.#log(`take ${kept.path}: ${String(error)}`);
      return undefined;
    }
  }

  /** Its stamps, just after it was laid out: from here on every change shows. */
  seal(at: string, folders: readonly string[], about: Omit<LaidFolder, "stamps">): LaidFolder {
    return { ...about, stamps: new Map(folders.map((path) => [path, stampOf(join(at, path))])) };
  }

  /** Once nothing of what could change it is alive. What has changed is left where it is: false. */
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

  /** Counts it, here or elsewhere, until it is let go; what was kept the longest goes for it. False: it is too much. */
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
