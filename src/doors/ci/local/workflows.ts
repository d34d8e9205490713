/** The workflow files of a repository. */
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, isAbsolute, join, relative } from "node:path";
import { Fault } from "#base/fault.ts";
import { type SourceFile } from "#doors/ci/workflow/compile/file.ts";
import { standardLimits } from "#doors/ci/workflow/limits.ts";

export const workflowFolder = ".github/workflows";
const filesMax = 1000;

/** Paths below the root, in order. */
export async function workflowPaths(root: string): Promise<readonly string[]> {
  const names = await readdir(join(root, workflowFolder)).catch(() => []);
  return names
    .filter((name) => /\.ya?ml$/.test(name))
    .toSorted()
    .slice(0, filesMax)
    .map((name) => `${workflowFolder}/${name}`);
}

/** A path as it was typed, or the name of a file among the workflows. */
export async function findWorkflow(root: string, word: string, folder: string): Promise<string> {
  const paths = await workflowPaths(root);
  const found = paths.find(
    (path) => path === word || basename(path) === word || basename(path).replace(/\.ya?ml$/, "") === word,
  );
  if (found !== undefined) return found;
  const absolute = isAbsolute(word) ? word : join(folder, word);
  if (await stat(absolute).catch(() => undefined)) return relative(root, absolute);
  const known = paths.map((path) => basename(path)).join(", ");
  throw new Fault("not-found", "find the workflow", { workflow: word, known: known === "" ? "none" : known });
}

export async function readSource(root: string, path: string): Promise<SourceFile> {
  const absolute = isAbsolute(path) ? path : join(root, path);
  const found = await stat(absolute).catch(() => undefined);
  if (!found?.isFile()) throw new Fault("not-found", "read the workflow", { file: path });
  if (found.size > standardLimits.fileLengthMax * 4)
    throw new Fault("invalid", "read the workflow", { file: path, why: "larger than 1 MiB" });
  return { path, text: await readFile(absolute, "utf8") };
}

/** All local workflows, for those that call one another. */
export async function readAll(root: string): Promise<ReadonlyMap<string, SourceFile>> {
  const paths = await workflowPaths(root);
  const files = await Promise.all(paths.map(async (path) => [path, await readSource(root, path)] as const));
  return new Map(files);
}

/** `./.github/workflows/x.yml` of a caller, when it is one of these files. */
export function calledFrom(files: ReadonlyMap<string, SourceFile>): (uses: string) => SourceFile | undefined {
  return (uses) => (/^(\.\/|\$\/)/.test(uses) ? files.get(uses.slice(2)) : undefined);
}
