/** Files that are whole after a crash: written aside, flushed, renamed over, and the folder flushed too. */
import { ignoreMissing } from "#base/ignore-missing.ts";
import { open, readFile, rename, symlink, unlink } from "node:fs/promises";
import { dirname } from "node:path";

export async function writeDurably(path: string, text: string): Promise<void> {
  const aside = `${path}.new`;
  const file = await open(aside, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(aside, path);
  await flushFolder(dirname(path));
}

/** Points a link at another target in one step: a crash leaves the old target or the new one. */
export async function switchLink(link: string, target: string): Promise<void> {
  const aside = `${link}.new`;
  await unlink(aside).catch(ignoreMissing);
  await symlink(target, aside);
  await rename(aside, link);
  await flushFolder(dirname(link));
}

export async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Undefined where there is none. */
export async function readIfThere(path: string): Promise<string | undefined> {
  return await readFile(path, "utf8").catch(ignoreMissing);
}
