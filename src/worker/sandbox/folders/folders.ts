/** Folders as a sandbox has to see them. */
import { realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Fault } from "#base/fault.ts";

/** Those that are there, by their real names, without those that are inside another one. */
export function foldersAmong(paths: readonly string[]): readonly string[] {
  const real = paths
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory())
    .map((path) => realpathSync(path));
  return [...new Set(real)].filter((path) => !isInside(path, real));
}

export const isInside = (path: string, folders: readonly string[]): boolean =>
  folders.some((folder) => path.startsWith(`${folder}/`));

/** Other users work below it: every folder above has to let them pass. */
export function checkPassable(home: string): void {
  const path = closedAbove(home);
  if (path !== undefined)
    throw new Fault("invalid", "open sandbox", {
      home,
      why: `users of lanes cannot pass through ${path}`,
      wants: "mode o+x",
    });
}

export const isPassable = (folder: string): boolean => closedAbove(folder) === undefined;

/** It, or the first one above it, that does not let others pass. */
function closedAbove(folder: string): string | undefined {
  for (let path = realpathSync(folder); ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) return path;
    if (path === dirname(path)) return undefined;
  }
}
