/** What commands must find at its own place, although a sandbox replaces that place or their user cannot enter it. */
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { isInside } from "./folders/folders.ts";

/** The file or folder `from`, which commands see at `at`. */
export type Shown = { readonly from: string; readonly at: string };

export type Shows = {
  /** To be mounted, read-only: what is visible anyway is not among them. */
  readonly shown: readonly Shown[];
  /** Folders that lead to what is shown and that no other user may enter: otherwise empty in the sandbox. */
  readonly entered: readonly string[];
};

export function showsAmong(all: readonly Shown[], replaced: readonly string[]): Shows {
  const shown = all.filter(({ from, at }) => from !== at || isInside(at, replaced));
  const others = shown.filter(({ from, at }) => from !== at && !isInside(at, replaced));
  return { shown, entered: [...new Set(others.flatMap(({ at }) => firstClosed(at) ?? []))] };
}

/** From the root of the file system on: the first folder that other users cannot traverse. */
function firstClosed(path: string): string | undefined {
  const folder = dirname(path);
  if (folder === path) return undefined;
  return firstClosed(folder) ?? ((statSync(folder).mode & 0o001) === 0 ? folder : undefined);
}
