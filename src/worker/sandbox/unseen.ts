/**
 * What commands must not see of this machine, as it is now: files appear, vanish and are replaced while a node runs,
 * and a sandbox cannot be made if a path to hide does not exist.
 */
import { lstatSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isInside, isPassable } from "./folders/folders.ts";

type HiddenPath = { readonly path: string; readonly isFolder: boolean };

export class Unseen {
  readonly #paths: readonly string[];
  /**
   * Commands run as other users: where those have no access, nothing needs to be hidden, and hiding is not possible.
   */
  readonly #areOthers: boolean;
  #hidden: readonly HiddenPath[] = [];
  /** Only files: folders do not change, may be on a network, and are not checked for every command. */
  #watched: readonly string[] = [];
  /** Undefined: must be read again. */
  #stamp: string | undefined;

  constructor(paths: readonly string[], { areOthers }: { readonly areOthers: boolean }) {
    this.#paths = paths;
    this.#areOthers = areOthers;
    this.look();
  }

  /** Real paths, without those inside another one. */
  get folders(): readonly string[] {
    const real = this.#hidden.flatMap(({ path, isFolder }) => (isFolder ? [path] : []));
    return [...new Set(real)].filter((path) => !isInside(path, real));
  }

  /** Real paths, because links are resolved. */
  get files(): readonly string[] {
    return [...new Set(this.#hidden.flatMap(({ path, isFolder }) => (isFolder ? [] : [path])))];
  }

  /** Whether something changed: then existing sandboxes hide the wrong files. */
  look(): boolean {
    if (this.#stamp !== undefined && this.#watched.map(stampOf).join(" ") === this.#stamp) return false;
    // The old target of a link is still a secret after the link changed.
    const paths = new Set([...this.#paths, ...this.files]);
    // Stamps first, so that a change in between is noticed the next time.
    const found = [...paths].map((path) => ({ path, stamp: stampOf(path), hidden: this.#hiddenOf(path) }));
    const watched = found.filter(({ hidden }) => hidden?.isFolder !== true);
    this.#hidden = found.flatMap(({ hidden }) => hidden ?? []);
    this.#watched = watched.map(({ path }) => path);
    this.#stamp = watched.map(({ stamp }) => stamp).join(" ");
    return true;
  }

  /** A sandbox could not be made, perhaps because of a change that the stamps do not show. */
  distrust(): void {
    this.#stamp = undefined;
  }

  #hiddenOf(path: string): HiddenPath | undefined {
    const hidden = orUndefined(() => hiddenOf(path));
    const isOutOfReach = this.#areOthers && hidden && orUndefined(() => isPassable(dirname(hidden.path))) !== true;
    return isOutOfReach ? undefined : hidden;
  }
}

/** Called before every command, also for files that usually do not exist: avoids exceptions. */
function stampOf(path: string): string {
  const stat = orUndefined(() => statSync(path, { throwIfNoEntry: false }));
  return stat ? `${stat.dev}:${stat.ino}:${stat.isDirectory() ? "" : stat.ctimeMs}` : "none";
}

function hiddenOf(path: string): HiddenPath | undefined {
  const stat = statSync(path);
  if (stat.isDirectory()) return { path: realpathSync(path), isFolder: true };
  if (!stat.isFile() && !stat.isSocket()) return undefined;
  const folder = dirname(path);
  return isSwapped(folder)
    ? { path: realpathSync(folder), isFolder: true }
    : { path: realpathSync(path), isFolder: false };
}

/**
 * Kubernetes replaces the folder behind this link with every change: then the whole folder is hidden, which covers the
 * next one.
 */
const isSwapped = (folder: string): boolean =>
  lstatSync(join(folder, "..data"), { throwIfNoEntry: false })?.isSymbolicLink() === true;

/** For paths that do not exist or that this process cannot access: neither can its commands. */
function orUndefined<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
