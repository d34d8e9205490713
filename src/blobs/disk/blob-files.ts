/** Large blobs: a file each, two levels of folders by key. A name always means the whole blob. */
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { digestFunctions } from "#base/digest.ts";
import type { Key } from "./key.ts";
import { syncFolder } from "#blobs/sync-folder.ts";
import { Turns } from "./turns.ts";

export type FileName = { readonly fn: number; readonly hex: string };

export const fileName = (fn: number, key: Key): FileName => ({
  fn,
  hex: Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("hex"),
});

export type Publication = {
  readonly record: () => Promise<void>;
  /** Whether there is a blob of that name: then the file is its file, whoever brought it. */
  readonly isKnown: () => boolean;
  /** Whether file and name are to outlive a loss of power before it is recorded. */
  readonly isSynced: boolean;
};

export class BlobFiles {
  readonly #folder: string;
  /** One at a time for each name: a file that comes must not be the one that goes. */
  readonly #turns = new Turns();

  constructor(folder: string) {
    this.#folder = folder;
  }

  path({ fn, hex }: FileName): string {
    return join(this.#folder, hex.slice(0, 2), hex.slice(2, 4), `${hex}.${digestFunctions[fn] ?? fn}`);
  }

  /** Moves a whole, verified file to its place, and has it recorded; back again if it could not be. */
  async publish(from: string, name: FileName, { record, isKnown, isSynced }: Publication): Promise<void> {
    const path = this.path(name);
    if (isSynced) await syncFile(from);
    await this.#turns.take(path, async () => {
      const isNewFolder = await moved(from, path);
      try {
        if (isSynced) await this.#syncFolders(path, isNewFolder);
        await record();
      } catch (error) {
        if (!isKnown()) await rename(path, from);
        throw error;
      }
    });
  }

  /** Unless it is wanted again meanwhile. */
  async remove(name: FileName, isWanted: () => boolean): Promise<void> {
    const path = this.path(name);
    await this.#turns.take(path, async () => {
      if (!isWanted()) await rm(path, { force: true });
    });
  }

  open(name: FileName): Promise<FileHandle> {
    return open(this.path(name), "r");
  }

  /** The file and its name outlive a loss of power from here on. */
  async sync(name: FileName): Promise<void> {
    const path = this.path(name);
    await syncFile(path);
    await this.#syncFolders(path, true);
  }

  /** With those above it, if it may be new itself. */
  async #syncFolders(path: string, isNew: boolean): Promise<void> {
    const folder = dirname(path);
    for (const one of isNew ? [folder, dirname(folder), this.#folder] : [folder]) await syncFolder(one);
  }
}

/** Says whether its folder had to be made. */
async function moved(from: string, path: string): Promise<boolean> {
  try {
    await rename(from, path);
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await rename(from, path);
    return true;
  }
}

async function syncFile(path: string): Promise<void> {
  await using file = await open(path, "r");
  await file.sync();
}
