/** Folders with files and a commit, as tools expect that hash a checkout. */
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, readlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "./processes.ts";
import { clearAway } from "#testing/clear-away.ts";

export type Files = Readonly<Record<string, string>>;

export async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "millrace-client-"));
  return { path, [Symbol.asyncDispose]: async () => clearAway(path) };
}

export async function makeFiles(root: string, files: Files): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), content);
    if (name.endsWith(".sh")) await chmod(join(root, name), 0o755);
  }
}

export async function makeCheckout(root: string, files: Files): Promise<void> {
  await makeFiles(root, files);
  const identity = ["-c", "user.name=mill", "-c", "user.email=mill@localhost"];
  for (const args of [
    ["init", "-q", "."],
    ["add", "-A"],
    [...identity, "commit", "-qm", "first"],
  ]) {
    const { code, output } = await run("git", args, { cwd: root });
    if (code !== 0) throw new Error(`git ${args.join(" ")}: ${output}`);
  }
}

/** Every file below a folder with its mode and content, links as links: equal text means equal trees. */
export async function treeText(root: string, below = ""): Promise<string> {
  const lines: string[] = [];
  for (const name of (await readdir(join(root, below))).toSorted()) {
    const path = join(below, name);
    const at = await lstat(join(root, path));
    if (at.isSymbolicLink()) lines.push(`${path} -> ${await readlink(join(root, path))}`);
    else if (at.isDirectory()) lines.push(await treeText(root, path));
    else
      lines.push(
        `${path} ${(at.mode & 0o111) === 0 ? "-" : "x"} ${(await readFile(join(root, path))).toString("base64")}`,
      );
  }
  return lines.join("\n");
}
