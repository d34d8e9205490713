/**
 * What commands must not see of this machine, as it is just now: files come, go and are replaced while a node runs, and
 * a sandbox cannot be made where something that is to be hidden is not there.
 */
import { lstatSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isInside, isPassable } from "./folders/folders.ts";

type Place = { readonly path: string; readonly isFolder: boolean };

export class Unseen {
  readonly #paths: readonly string[];
  /** Commands have users of their own: where these cannot go there is nothing to hide, and no way to. */
  readonly #areOthers: boolean;
  #places: readonly Place[] = [];
  /** Folders stay; they may be far away as well, and are not asked about for every command. */
  #watched: readonly string[] = [];
  /** Undefined: to be looked at anew, whatever it seems. */
  #stamp: string | undefined;

  constructor(paths: readonly string[], { areOthers }: { readonly areOthers: boolean }) {
    this.#paths = paths;
    this.#areOthers = areOthers;
    this.look();
  }

  /** By their real names, without those that are inside another one. */
  get folders(): readonly string[] {
    const real = this.#places.flatMap(({ path, isFolder }) => (isFolder ? [path] : []));
    return [...new Set(real)].filter((path) => !isInside(path, real));
  }

  /** By their real names: that is where links lead to. */
  get files(): readonly string[] {
    return [...new Set(this.#places.flatMap(({ path, isFolder }) => (isFolder ? [] : [path])))];
  }

  /** Whether something is not what it was: then sandboxes that were made before hide the wrong things. */
  look(): boolean {
    if (this.#stamp !== undefined && this.#watched.map(stampOf).join(" ") === this.#stamp) return false;
    // What a link led to is a secret still when it leads elsewhere.
    const paths = new Set([...this.#paths, ...this.files]);
    // The stamps first: what changes in between is seen the next time.
    const found = [...paths].map((path) => ({ path, stamp: stampOf(path), place: this.#placeOf(path) }));
    const watched = found.filter(({ place }) => place?.isFolder !== true);
    this.#places = found.flatMap(({ place }) => place ?? []);
    this.#watched = watched.map(({ path }) => path);
    this.#stamp = watched.map(({ stamp }) => stamp).join(" ");
    return true;
  }

  /** A sandbox could not be made: perhaps because of a change that does not show. */
  distrust(): void {
    this.#stamp = undefined;
  }

  #placeOf(path: string): Place | undefined {
    const place = orUndefined(() => placeOf(path));
    const isOutOfReach = this.#areOthers && place && orUndefined(() => isPassable(dirname(place.path))) !== true;
    return isOutOfReach ? undefined : place;
  }
}

/** Asked before every command, also for files that are usually not there: no exception then. */
function stampOf(path: string): string {
  const stat = orUndefined(() => statSync(path, { throwIfNoEntry: false }));
  return stat ? `${stat.dev}:${stat.ino}:${stat.isDirectory() ? "" : stat.ctimeMs}` : "none";
}

function placeOf(path: string): Place | undefined {
  const stat = statSync(path);
  if (stat.isDirectory()) return { path: realpathSync(path), isFolder: true };
  if (!stat.isFile() && !stat.isSocket()) return undefined;
  const folder = dirname(path);
  return isSwapped(folder)
    ? { path: realpathSync(folder), isFolder: true }
    : { path: realpathSync(path), isFolder: false };
}

/** Kubernetes puts a new folder behind this link with every change: then the whole is hidden, the next one, too. */
const isSwapped = (folder: string): boolean =>
  lstatSync(join(folder, "..data"), { throwIfNoEntry: false })?.isSymbolicLink() === true;

/** For what is not there, and for what this process cannot look at: nor can what it runs. */
function orUndefined<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
