/** How streams are stored on disk: a folder for each task, a file for each token and name. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

type StreamFile = { readonly name: string; readonly token: number; readonly sizeBytes: number };

/** The streams of one task. */
export async function filesIn(folder: string): Promise<readonly StreamFile[]> {
  const files: StreamFile[] = [];
  for (const name of await namesIn(folder)) {
    const match = /^(\d+)-[0-9a-f]{64}$/.exec(name);
    if (!match) continue;
    const { size: sizeBytes } = await stat(join(folder, name));
    files.push({ name, token: Number(match[1]), sizeBytes });
  }
  return files;
}

export const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
