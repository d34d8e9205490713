/**
 * Gives a file its name so that the name outlives a power cut: a name is durable when the folder that holds it was
 * synced, and a folder's own name likewise, up to the root. Folders whose names we have made sure of are remembered, so
 * that most names cost one sync or two.
 */
import { mkdir, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { syncFolder } from "#blobs/sync-folder.ts";

const foldersMax = 100_000;

export class DurableNames {
  readonly #root: string;
  readonly #folders = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  async give(partial: string, path: string): Promise<void> {
    const folder = dirname(path);
    if (!this.#folders.has(folder) || !(await isRenamed(partial, path))) {
      const made = await mkdir(folder, { recursive: true });
      // Somebody has removed it, and who knows what else.
      if (made !== undefined && this.#folders.has(made)) this.#folders.clear();
      await rename(partial, path);
    }
    await this.#sync(folder);
  }

  async #sync(from: string): Promise<void> {
    const made: string[] = [];
    for (let folder = from; folder.length >= this.#root.length; folder = dirname(folder)) {
      await syncFolder(folder);
      if (this.#folders.has(folder)) break;
      made.push(folder);
    }
    if (this.#folders.size > foldersMax) this.#folders.clear();
    for (const folder of made) this.#folders.add(folder);
  }
}

async function isRenamed(partial: string, path: string): Promise<boolean> {
  try {
    await rename(partial, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return false;
  }
}
