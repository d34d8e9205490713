/** Files of the node's machine that a pattern stands for. */
import { glob, realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { Fault } from "#base/fault.ts";
import { placeOf } from "#doors/batch/memo/identity.ts";
import type { SourceFile } from "#doors/batch/plan/source.ts";

export const filesMax = 100_000;
export const isPattern = (text: string): boolean => /[*?[\]{}]/.test(text);

/** Sorted by name: the order in which DuckDB would read them. With `within`, by where they really lie. */
export async function nodeFiles(pattern: string, within?: string): Promise<readonly SourceFile[]> {
  const found = isPattern(pattern) ? await matching(pattern) : [pattern];
  if (within === undefined) return await Promise.all(found.map(fileAt));
  const root = `${await realOf(within)}/`;
  const real: string[] = [];
  for (const path of found) {
    const one = await realOf(path);
    if (!one.startsWith(root))
      throw new Fault("invalid", "find files", { path, why: "a link leads out of what is granted" });
    real.push(one);
  }
  return await Promise.all(real.map(fileAt));
}

async function matching(pattern: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const path of glob(pattern)) {
    found.push(resolve(path));
    if (found.length > filesMax) throw new Fault("exhausted", "find files", { pattern, filesMax });
  }
  return found.toSorted();
}

const missing = (path: string, error?: unknown): Fault =>
  new Fault("not-found", "find files", { path, why: "there is no such file, or it cannot be read" }, error);

const realOf = (path: string): Promise<string> =>
  realpath(path).catch((error: unknown) => {
    throw missing(path, error);
  });

async function fileAt(path: string): Promise<SourceFile> {
  const place = await placeOf(path);
  const about = await stat(path).catch((error: unknown) => {
    throw missing(path, error);
  });
  if (!about.isFile()) throw new Fault("invalid", "find files", { path, why: "it is no file" });
  return { path, bytes: about.size, place: place ?? "" };
}
