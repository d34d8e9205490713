/** What git knows of the folder that a workflow is run in. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { basename } from "node:path";
import { Fault } from "#base/fault.ts";

const run = promisify(execFile);
const outputBytesMax = 256 * 1024 * 1024;
const timeoutMs = 60_000;

export type Repository = {
  readonly root: string;
  /** `owner/name`, from the address of `origin` when there is one. */
  readonly name: string;
  readonly ref: string;
  /** Zeroes before the first commit. */
  readonly sha: string;
  readonly before: string;
  readonly message: string;
  readonly actor: string;
  readonly defaultBranch: string;
  /** Undefined when git cannot tell. */
  readonly changedFiles: readonly string[] | undefined;
};

const noCommit = "0".repeat(40);

export async function git(folder: string, args: readonly string[]): Promise<string> {
  const { stdout } = await run("git", ["-C", folder, ...args], { maxBuffer: outputBytesMax, timeout: timeoutMs });
  return stdout;
}

const maybe = async (folder: string, args: readonly string[]): Promise<string | undefined> =>
  await git(folder, args).then(
    (text) => text.trim(),
    () => undefined,
  );

/** Undefined outside of every repository. */
export async function rootOf(folder: string): Promise<string | undefined> {
  const root = await maybe(folder, ["rev-parse", "--show-toplevel"]);
  return root === "" ? undefined : root;
}

export async function readRepository(folder: string): Promise<Repository> {
  const root = await rootOf(folder);
  if (root === undefined)
    throw new Fault("invalid", "run a workflow", {
      folder,
      try: "run it inside a git repository, or run `git init` first",
    });
  const sha = (await maybe(root, ["rev-parse", "--verify", "HEAD"])) ?? noCommit;
  const branch = await maybe(root, ["symbolic-ref", "--short", "HEAD"]);
  const tag = branch === undefined ? await maybe(root, ["describe", "--exact-match", "--tags", "HEAD"]) : undefined;
  const before = (await maybe(root, ["rev-parse", "--verify", "HEAD~1"])) ?? noCommit;
  const origin = await maybe(root, ["config", "--get", "remote.origin.url"]);
  const changed = before === noCommit ? undefined : await maybe(root, ["diff", "--name-only", "-z", before, sha]);
  const remoteHead = await maybe(root, ["symbolic-ref", "--short", "refs/remotes/origin/HEAD"]);
  return {
    root,
    name: nameOf(origin) ?? `local/${basename(root)}`,
    ref: tag === undefined ? `refs/heads/${branch ?? "HEAD"}` : `refs/tags/${tag}`,
    sha,
    before,
    message: (await maybe(root, ["log", "-1", "--format=%B"])) ?? "",
    actor: (await maybe(root, ["config", "--get", "user.name"])) ?? "local",
    defaultBranch: remoteHead?.replace(/^origin\//, "") ?? "main",
    changedFiles: changed?.split("\0").filter((path) => path !== ""),
  };
}

/** The last two parts of an address: `git@host:owner/name.git`, `https://host/owner/name`. */
function nameOf(address: string | undefined): string | undefined {
  const match = /[/:]([^/:]+\/[^/]+?)(?:\.git)?\/?$/.exec(address ?? "");
  return match?.[1];
}
