/** How streams are stored on disk: a folder for each task, a file for each token and name. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

type StreamFile = { readonly name: string; readonly token: number; readonly sizeBytes: number };

/** The streams of one task. */
export async function filesIn(folder: string): Promise<readonly StreamFile[]> {
  const files = new Map<string, StreamFile>();
  for (const path of await namesIn(folder)) {
    const [, name = "", token] = /^((\d+)-[0-9a-f]{64})(?:\.sums)?$/.exec(path) ?? [];
    if (token === undefined || files.has(name)) continue;
    const sizeBytes = await stat(join(folder, name)).then(
      ({ size }) => size,
      () => 0, // only its checksums are left
    );
    files.set(name, { name, token: Number(token), sizeBytes });
  }
  return [...files.values()];
}

export const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
