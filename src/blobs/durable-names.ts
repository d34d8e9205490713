/**
 * Makes file names survive a power failure. A name is durable once the folder that holds it is synced, and so is that
 * folder's own name, up to the root. Folders known to be durable are remembered, so that most names cost one sync.
 */
import { mkdir, rename } from "node:fs/promises";
import { dirname } from "node:path";
import type { Syncs } from "./syncs.ts";

const foldersMax = 100_000;

export class DurableNames {
  readonly #root: string;
  readonly #syncs: Syncs;
  readonly #folders = new Set<string>();

  constructor(root: string, syncs: Syncs) {
    this.#root = root;
    this.#syncs = syncs;
  }

  /** Renames the file and makes the new name durable. */
  async give(partial: string, path: string): Promise<void> {
    await this.move(partial, path);
    await this.sync(dirname(path));
  }

  /** Renames the file, and creates the folder if it is missing. */
  async move(from: string, path: string): Promise<void> {
    if (await isRenamed(from, path)) return;
    await this.makeFolder(dirname(path));
    await rename(from, path);
  }

  async makeFolder(path: string): Promise<void> {
    const made = await mkdir(path, { recursive: true, mode: 0o700 });
    // A folder that we knew was removed from outside: forget all, because others may be gone too.
    if (made !== undefined && this.#folders.has(made)) this.#folders.clear();
  }

  /** Syncs the names in this folder, and the folder's own name. */
  async sync(from: string): Promise<void> {
    const made: string[] = [];
    for (let folder = from; folder.length >= this.#root.length; folder = dirname(folder)) {
      await this.#syncs.folder(folder);
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
