/**
 * Makes names outlive a loss of power: a name is durable when the folder that holds it was synced, and so is that
 * folder's own name, up to the root. Folders whose own names are known to be durable are remembered, so that most names
 * cost one sync.
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

  /** Renames the file and makes its new name durable. */
  async give(partial: string, path: string): Promise<void> {
    await this.move(partial, path);
    await this.sync(dirname(path));
  }

  /** Renames the file; the folder is made where it is not there. */
  async move(from: string, path: string): Promise<void> {
    if (await isRenamed(from, path)) return;
    await this.makeFolder(dirname(path));
    await rename(from, path);
  }

  async makeFolder(path: string): Promise<void> {
    const made = await mkdir(path, { recursive: true, mode: 0o700 });
    // Somebody has removed it, and who knows what else.
    if (made !== undefined && this.#folders.has(made)) this.#folders.clear();
  }

  /** The names in this folder, and its own name. */
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
