/** Large blobs: one file each, in two levels of folders by key. A name always means the complete blob. */
import { open, rename, rm, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { digestFunctions } from "#base/digest.ts";
import type { Key } from "./table/key.ts";
import type { DurableNames } from "#blobs/durable-names.ts";
import type { Syncs } from "#blobs/syncs.ts";
import { Turns } from "./turns.ts";

export type FileName = { readonly fn: number; readonly hex: string };

export const fileName = (fn: number, key: Key): FileName => ({
  fn,
  hex: Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("hex"),
});

export const filePath = (folder: string, { fn, hex }: FileName): string =>
  join(folder, hex.slice(0, 2), hex.slice(2, 4), `${hex}.${digestFunctions[fn] ?? fn}`);

export type Publication = {
  readonly record: () => Promise<void>;
  /** Whether an entry has this name: then the file belongs to it, whichever upload wrote it. */
  readonly isKnown: () => boolean;
  /** Whether file and name must be durable before they are recorded. */
  readonly isSynced: boolean;
};

export class BlobFiles {
  readonly #folder: string;
  /** One operation at a time for each name: a new file must not be taken for the one being deleted. */
  readonly #turns = new Turns();
  /** By path; with `isWanted`, it was to be removed meanwhile. */
  readonly #lent = new Map<string, { count: number; isWanted: (() => boolean) | undefined }>();
  readonly #names: DurableNames;
  readonly #syncs: Syncs;

  constructor(folder: string, names: DurableNames, syncs: Syncs) {
    this.#folder = folder;
    this.#names = names;
    this.#syncs = syncs;
  }

  path(name: FileName): string {
    return filePath(this.#folder, name);
  }

  /** Moves a complete, verified file into place and records it; moves it back if recording fails. */
  async publish(from: string, name: FileName, { record, isKnown, isSynced }: Publication): Promise<void> {
    const path = this.path(name);
    if (isSynced) await this.#syncFile(from);
    await this.#turns.take(path, async () => {
      await this.#names.move(from, path);
      try {
        if (isSynced) await this.#names.sync(dirname(path));
        await record();
      } catch (error) {
        if (!isKnown()) await rename(path, from);
        throw error;
      }
    });
  }

  /** Resolves when no file of this name is being moved into place or removed. */
  async settled(name: FileName): Promise<void> {
    await this.#turns.take(this.path(name), () => Promise.resolve());
  }

  /** Does nothing if the blob is wanted again meanwhile. A file that is lent is removed when it is given back. */
  async remove(name: FileName, isWanted: () => boolean): Promise<void> {
    const path = this.path(name);
    await this.#turns.take(path, async () => {
      if (isWanted()) return;
      const lent = this.#lent.get(path);
      if (lent) lent.isWanted = isWanted;
      else await rm(path, { force: true });
    });
  }

  /** Until the returned function is called, the file stays where it is. */
  lend(name: FileName): () => Promise<void> {
    const path = this.path(name);
    const lent = this.#lent.get(path) ?? { count: 0, isWanted: undefined };
    lent.count += 1;
    this.#lent.set(path, lent);
    let isLent = true;
    return async () => {
      if (!isLent) return;
      isLent = false;
      lent.count -= 1;
      if (lent.count > 0) return;
      this.#lent.delete(path);
      if (lent.isWanted) await this.remove(name, lent.isWanted);
    };
  }

  open(name: FileName): Promise<FileHandle> {
    return open(this.path(name), "r");
  }

  /** Makes the file and its name durable. */
  async sync(name: FileName): Promise<void> {
    const path = this.path(name);
    await this.#syncFile(path);
    await this.#names.sync(dirname(path));
  }

  async #syncFile(path: string): Promise<void> {
    await using file = await open(path, "r");
    await this.#syncs.file(file.fd, path);
  }
}
