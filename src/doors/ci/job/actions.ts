/**
 * Actions of others (CI-71): the node finds each `owner/repo@ref` that a job will use, once, as one commit, and lays it
 * into the job's folder before the job starts, because the job cannot see the node's copies. What actions use in turn
 * is found as well.
 */
import { cp, mkdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Fault, isFault } from "#base/fault.ts";
import type { Repository } from "#sources/book.ts";
import { git, gitText } from "#sources/git.ts";
import { checkRepositoryName, isSha } from "#sources/names.ts";
import type { Sources } from "#sources/sources.ts";
import { isLocalUses } from "#doors/ci/workflow/compile/ids.ts";
import type { Step } from "#doors/ci/workflow/compile/model.ts";
import { actionIn } from "#doors/ci/run/manifest.ts";
import { ownActions } from "#doors/ci/local/machine.ts";
import { foldersOf } from "#doors/ci/local/workflows.ts";
import { type JobRequest, names } from "./request.ts";
import { type UsesParts, usesParts } from "./uses-parts.ts";

export type ActionSettings = {
  readonly sources: Sources;
  /** A folder with actions, which comes first. */
  readonly folder: string | undefined;
  /** The address of a git server that has what is registered nowhere. */
  readonly server: string | undefined;
};

type Laid = NonNullable<JobRequest["actions"]>;

export type Using = {
  readonly tenant: string;
  /** The job's own folder. */
  readonly box: string;
  readonly steps: readonly Step[];
  /** By `owner/repo@ref`: the commits that an earlier attempt at the job has used. */
  readonly commits: Readonly<Record<string, string>>;
  /** Where local actions are read. */
  readonly commit?: { readonly mirror: string; readonly sha: string };
};

const actionsMax = 100;
const depthMax = 10;
const actionBytesMax = 2 * 1024 * 1024 * 1024;
const manifestBytesMax = 1024 * 1024;

/** What could not be had is told to the job, which fails where it needs it. */
export async function layActions(settings: ActionSettings, using: Using): Promise<Laid> {
  const laid: Record<string, Laid[string]> = {};
  const seen = new Set<string>();
  let level = usesOf(using.steps);
  for (let depth = 0; depth <= depthMax && level.length > 0; depth += 1) {
    const next: string[] = [];
    for (const uses of level) {
      if (seen.has(uses)) continue;
      seen.add(uses);
      const text = isLocalUses(uses) ? await localManifest(uses, using) : await foreign(uses, laid, settings, using);
      if (text !== undefined) next.push(...usesIn(text));
    }
    level = next;
  }
  return laid;
}

const usesOf = (steps: readonly Step[]): readonly string[] =>
  steps.flatMap((step) => {
    if (step.kind === "parallel") return usesOf(step.steps);
    return step.kind === "uses" && !step.uses.startsWith("docker://") ? [step.uses] : [];
  });

/** What is wrong with an action is said when it runs. */
function usesIn(manifest: string): readonly string[] {
  try {
    const { runs } = actionIn(manifest, { path: "action.yml", folder: "" });
    return runs.kind === "composite" ? usesOf(runs.steps) : [];
  } catch {
    return [];
  }
}

async function localManifest(uses: string, { commit }: Using): Promise<string | undefined> {
  const path = uses.replace(/^(\.\/|\$\/)/, "").replace(/\/+$/, "");
  return commit && (await manifestOf(commit.mirror, commit.sha, path));
}

/** Read from git, not from files: a link in a tree leads nowhere. */
async function manifestOf(mirror: string, sha: string, path: string): Promise<string | undefined> {
  for (const name of ["action.yml", "action.yaml"]) {
    const at = path === "" ? name : `${path}/${name}`;
    const options = { bytesMax: manifestBytesMax };
    const text = await gitText(mirror, ["cat-file", "blob", `${sha}:${at}`], options).catch(() => undefined);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** Lays the action's repository, unless it is there, and returns what its manifest says. */
async function foreign(
  uses: string,
  laid: Record<string, Laid[string]>,
  settings: ActionSettings,
  using: Using,
): Promise<string | undefined> {
  const named = usesParts(uses);
  if (!named) return undefined;
  const { repository, path, ref } = named;
  const key = `${repository}@${ref}`;
  const before = laid[key];
  if (!before && Object.keys(laid).length >= actionsMax) {
    laid[key] = { missing: `a job may use ${actionsMax} different actions` };
    return undefined;
  }
  const folder = join(names.actions, String(Object.keys(laid).length));
  const given = await folderOf(named, settings);
  if (given !== undefined) {
    if (!before) await cp(given, join(using.box, folder), { recursive: true, verbatimSymlinks: true });
    laid[key] ??= { folder };
    return await manifestIn(join(given, path));
  }
  // what an earlier attempt used is used on, wherever its branch is now
  const wanted = using.commits[key] ?? ref;
  const found = await commitOf({ ...named, ref: wanted }, settings, using.tenant);
  if ("missing" in found) {
    laid[key] ??= ownActions.has(repository) ? {} : found;
    return undefined;
  }
  if (!before) {
    await layCommit(found, join(using.box, folder));
    laid[key] = { folder, sha: found.sha };
  }
  return await manifestOf(found.mirror, found.sha, path);
}

async function folderOf(named: UsesParts, { folder }: ActionSettings): Promise<string | undefined> {
  for (const name of folder === undefined ? [] : foldersOf(named)) {
    const path = join(folder ?? "", name);
    if ((await stat(path).catch(() => undefined))?.isDirectory()) return path;
  }
  return undefined;
}

/** Of the operator's folder. */
async function manifestIn(folder: string): Promise<string | undefined> {
  for (const name of ["action.yml", "action.yaml"]) {
    const text = await readFile(join(folder, name), "utf8").catch(() => undefined);
    if (text !== undefined) return text;
  }
  return undefined;
}

type Found = { readonly mirror: string; readonly sha: string };

async function commitOf(
  { repository, ref }: UsesParts,
  { sources, server }: ActionSettings,
  tenant: string,
): Promise<Found | { readonly missing: string }> {
  try {
    checkRepositoryName(repository);
    const known = await sources.book.get(tenant, repository);
    const from = known ? await sources.get(tenant, repository) : served(repository, tenant, server);
    if (!from) return { missing: `its repository is not registered; ${howToHave(repository)}` };
    if (isSha(ref)) return { mirror: await sources.copies.having(from, ref), sha: ref };
    const { sha } = await sources.copies.resolve(from, ref);
    return { mirror: sources.copies.path(from), sha };
  } catch (error) {
    if (!isFault(error, "invalid") && !isFault(error, "not-found")) throw error;
    return { missing: `${error.message}; ${howToHave(repository)}` };
  }
}

const served = (name: string, tenant: string, server: string | undefined): Repository | undefined =>
  server === undefined ? undefined : { tenant, name, url: `${server.replace(/\/+$/, "")}/${name}` };

const howToHave = (repository: string): string =>
  `register it with \`millrace ci add ${repository} <url>\`, put it into the folder that ci.actions names, ` +
  "or set ci.actionServer to a git server that has it";

/** As the job's own files: without history, and without anything that git would run. */
async function layCommit({ mirror, sha }: Found, into: string): Promise<void> {
  const sizes = await gitText(mirror, ["ls-tree", "-r", "--format=%(objectsize:padded)", sha]);
  const bytes = sizes.split("\n").reduce((sum, line) => sum + (Number(line) || 0), 0);
  if (bytes > actionBytesMax) throw new Fault("invalid", "lay an action", { sha, why: "it is larger than 2 GiB" });
  await mkdir(into, { recursive: true });
  const index = `${into}.index`;
  const words = [`--git-dir=${mirror}`, `--work-tree=${into}`, "checkout", "--quiet", "--force", sha, "--", "."];
  await git(into, words, { env: { GIT_INDEX_FILE: index }, timeoutMs: 300_000 });
  await rm(index, { force: true });
}
