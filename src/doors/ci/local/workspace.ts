/** A copy of the working tree for one job: what git tracks and what is new, not what it ignores. */
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readlink, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { git, type Repository } from "./repository.ts";

const copiesAtOnce = 32;

export async function fillWorkspace({ root, sha }: Repository, workspace: string): Promise<void> {
  const hasCommit = !/^0+$/.test(sha);
  // borrows the objects of the repository: history is there, and nothing large is copied
  if (hasCommit) {
    await git(root, ["clone", "--quiet", "--shared", "--no-checkout", root, workspace]);
    await git(workspace, ["update-ref", "--no-deref", "HEAD", sha]);
    await git(workspace, ["read-tree", "HEAD"]);
  } else {
    await mkdir(workspace, { recursive: true });
    await git(workspace, ["init", "--quiet"]);
  }
  const listed = await git(root, ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
  const paths = [...new Set(listed.split("\0"))].filter((path) => path !== "");
  for (let at = 0; at < paths.length; at += copiesAtOnce)
    await Promise.all(paths.slice(at, at + copiesAtOnce).map((path) => copy(root, workspace, path)));
}

async function copy(root: string, workspace: string, path: string): Promise<void> {
  const [from, to] = [join(root, path), join(workspace, path)];
  const stats = await lstat(from).catch(() => undefined);
  if (!stats || stats.isDirectory()) return; // removed, or a submodule
  await mkdir(dirname(to), { recursive: true });
  if (stats.isSymbolicLink()) await symlink(await readlink(from), to);
  else await copyFile(from, to, constants.COPYFILE_FICLONE);
}
