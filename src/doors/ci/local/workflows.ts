/** The workflow files of a repository. */
import { readFileSync, statSync } from "node:fs";
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

/** The same, and files of others below the folder of actions. */
export function calledHere(
  files: ReadonlyMap<string, SourceFile>,
  actionsFolder: string | undefined,
): (uses: string, caller: string) => SourceFile | undefined {
  const own = calledFrom(files);
  return (uses, caller) => {
    const path = calledPath(uses, caller) ?? "";
    const file = foreignFile(path);
    if (!file || actionsFolder === undefined) return own(uses, caller);
    for (const folder of foldersOf(file)) {
      const found = join(actionsFolder, folder, file.path);
      const facts = statSync(found, { throwIfNoEntry: false });
      if (facts?.isFile() && facts.size <= standardLimits.fileLengthMax * 4)
        return { path, text: readFileSync(found, "utf8") };
    }
    return undefined;
  };
}

/** Where a folder of actions may have a repository. */
export const foldersOf = ({
  repository,
  ref,
}: {
  readonly repository: string;
  readonly ref: string;
}): readonly string[] => [`${repository}@${ref}`, `${repository}/${ref}`, repository];

/** The file that `uses` of a job names, when it is one of these. Files of others are called `owner/repo/path@ref`. */
export function calledFrom(
  files: ReadonlyMap<string, SourceFile>,
): (uses: string, caller: string) => SourceFile | undefined {
  return (uses, caller) => files.get(calledPath(uses, caller) ?? "");
}

const foreign = /^([A-Za-z0-9_][^/@]*\/[^/@]+)\/([^@]+)@(.+)$/;

/** What a file of another repository calls with `./` is in that repository, at the same commit (CI-61). */
export function calledPath(uses: string, caller: string): string | undefined {
  if (!/^(\.\/|\$\/)/.test(uses)) return foreign.test(uses) ? uses : undefined;
  const [, repository, , ref] = foreign.exec(caller) ?? [];
  const path = uses.slice(2);
  return repository === undefined ? path : `${repository}/${path}@${ref}`;
}

/** Undefined for a file of the repository itself. */
export function foreignFile(
  path: string,
): { readonly repository: string; readonly path: string; readonly ref: string } | undefined {
  const [, repository, file, ref] = foreign.exec(path) ?? [];
  return repository === undefined || file === undefined || ref === undefined
    ? undefined
    : { repository, path: file, ref };
}
