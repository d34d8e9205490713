/** Paths of folders for a sandbox. */
import { realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Fault } from "#base/fault.ts";

/** The existing ones, by their real paths, without those inside another one. */
export function foldersAmong(paths: readonly string[]): readonly string[] {
  const real = paths
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory())
    .map((path) => realpathSync(path));
  return [...new Set(real)].filter((path) => !isInside(path, real));
}

export const isInside = (path: string, folders: readonly string[]): boolean =>
  folders.some((folder) => path.startsWith(`${folder}/`));

/** Other users work below it, so every folder above must let them traverse it. */
export function checkPassable(home: string): void {
  const path = closedAbove(home);
  if (path !== undefined)
    throw new Fault("invalid", "open sandbox", {
      home,
      why: `users of lanes cannot traverse ${path}`,
      wants: "mode o+x",
    });
}

export const isPassable = (folder: string): boolean => closedAbove(folder) === undefined;

/** The folder itself, or the first one above it, that others cannot traverse. */
function closedAbove(folder: string): string | undefined {
  for (let path = realpathSync(folder); ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) return path;
    if (path === dirname(path)) return undefined;
  }
}
