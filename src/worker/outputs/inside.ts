/**
 * Resolves a path below a root that an untrusted process filled: links are followed by hand, and never out of the root.
 */
import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { join } from "node:path";

const linksMax = 40;

export type Inside = { readonly path: string; readonly stats: Stats };

/**
 * The last component is not followed if it is a link. Undefined if the path does not exist or leads outside. `seenAs`
 * is the root's path as the process that made the links saw it.
 */
export function lookInside(root: string, path: string, seenAs: string, followLast = false): Inside | undefined {
  const todo = path.split("/").filter((part) => part !== "" && part !== ".");
  const at: string[] = [];
  let links = 0;
  for (;;) {
    const part = todo.shift();
    if (part === undefined) break;
    if (part === "..") {
      if (at.pop() === undefined) return undefined;
      continue;
    }
    const here = join(root, ...at, part);
    const stats = lstatSync(here, { throwIfNoEntry: false });
    if (!stats) return undefined;
    if (!stats.isSymbolicLink() || (todo.length === 0 && !followLast)) {
      if (todo.length > 0 && !stats.isDirectory()) return undefined;
      at.push(part);
      continue;
    }
    links += 1;
    if (links > linksMax) return undefined;
    const target = insideTarget(readlinkSync(here), seenAs);
    if (target === undefined) return undefined;
    if (target.fromRoot) at.length = 0;
    todo.unshift(...target.parts);
  }
  const stats = lstatSync(join(root, ...at), { throwIfNoEntry: false });
  return stats && { path: join(root, ...at), stats };
}

function insideTarget(target: string, seenAs: string): { fromRoot: boolean; parts: readonly string[] } | undefined {
  const parts = (text: string): readonly string[] => text.split("/").filter((part) => part !== "" && part !== ".");
  if (!target.startsWith("/")) return { fromRoot: false, parts: parts(target) };
  if (target !== seenAs && !target.startsWith(`${seenAs}/`)) return undefined;
  return { fromRoot: true, parts: parts(target.slice(seenAs.length)) };
}
