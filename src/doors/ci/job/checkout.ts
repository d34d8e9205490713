/**
 * How a commit gets into the workspace of a job. The node brings it into the job's folder, because a job cannot see the
 * node's copies of repositories; the job's own process checks it out, so that the files are its own.
 */
import { execFile } from "node:child_process";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type JobRequest, names } from "./request.ts";

/** A job has its workspace to itself: it reads what is there, whatever owns it. */
const gitConfig = join(import.meta.dirname, "gitconfig");

const run = promisify(execFile);
const timeoutMs = 600_000;

/** Of the job: `source` in its folder becomes the workspace's `.git`. */
export async function checkOut(
  { sha, ref }: NonNullable<JobRequest["checkout"]>,
  { folder, workspace, env }: { readonly folder: string; readonly workspace: string; readonly env: NodeJS.ProcessEnv },
): Promise<void> {
  await mkdir(workspace, { recursive: true });
  await rename(join(folder, names.source), join(workspace, ".git"));
  const own = async (...args: readonly string[]): Promise<void> => {
    await run("git", ["-C", workspace, ...args], { env: { ...env, GIT_CONFIG_GLOBAL: gitConfig }, timeout: timeoutMs });
  };
  const branch = /^refs\/heads\/(.+)$/.exec(ref)?.[1];
  if (branch === undefined) await own("checkout", "--quiet", "--force", "--detach", sha);
  else await own("checkout", "--quiet", "--force", "-B", branch, sha);
}
