/** Folders as a sandbox has to see them. */
import { realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Fault } from "#base/fault.ts";

/** Those that are there, by their real names, without those that are inside another one. */
export function foldersAmong(paths: readonly string[]): readonly string[] {
  const real = paths
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory())
    .map((path) => realpathSync(path));
  const isOuter = (path: string): boolean => !real.some((other) => other !== path && path.startsWith(`${other}/`));
  return [...new Set(real)].filter(isOuter);
}

/** Other users work below it: every folder above has to let them pass. */
export function checkPassable(home: string): void {
  for (let path = realpathSync(home); ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0)
      throw new Fault("invalid", "open sandbox", {
        home,
        why: `users of lanes cannot pass through ${path}`,
        wants: "mode o+x",
      });
    if (path === dirname(path)) return;
  }
}
