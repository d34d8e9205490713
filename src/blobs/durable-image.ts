/**
 * For tests: what a disk holds after a power failure if it kept only what was synced. A file has the bytes of its last
 * sync, a folder the names of its last sync. A removal that was not synced may or may not have reached the disk, so
 * tests try both.
 */
import { fstatSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BigIntStats } from "node:fs";
import { realSyncs, type Syncs } from "./syncs.ts";

type Name = { readonly id: string; readonly isFolder: boolean };

/** Includes the time of creation, because the system reuses inode numbers. */
const idOf = ({ dev, ino, birthtimeNs }: BigIntStats): string => `${dev} ${ino} ${birthtimeNs}`;

export class DurableImage {
  readonly #files = new Map<string, Buffer>();
  readonly #folders = new Map<string, ReadonlyMap<string, Name>>();
  /** Paths that were synced, in order. */
  readonly seen: string[] = [];
  /** Called before and after each sync. */
  onSync: () => void = () => {};

  readonly syncs: Syncs = {
    file: async (fd, path) => {
      this.onSync();
      await realSyncs.file(fd, path);
      this.#files.set(idOf(fstatSync(fd, { bigint: true })), readFileSync(path));
      this.seen.push(path);
      this.onSync();
    },
    folder: async (path) => {
      this.onSync();
      await realSyncs.folder(path);
      const names = readdirSync(path, { withFileTypes: true }).map((entry): [string, Name] => {
        const stats = lstatSync(join(path, entry.name), { bigint: true });
        return [entry.name, { id: idOf(stats), isFolder: entry.isDirectory() }];
      });
      this.#folders.set(idOf(statSync(path, { bigint: true })), new Map(names));
      this.seen.push(path);
      this.onSync();
    },
  };

  /** Writes the durable state of `root` into `target`, as if the power had failed now. */
  restore(root: string, target: string, removals: "lost" | "kept" = "lost"): void {
    const living = removals === "kept" ? livingIn(root) : undefined;
    this.#restore({ id: idOf(statSync(root, { bigint: true })), isFolder: true }, target, living);
  }

  #restore({ id, isFolder }: Name, target: string, living: ReadonlySet<string> | undefined): void {
    if (living && !living.has(id)) return;
    if (!isFolder) return writeFileSync(target, this.#files.get(id) ?? "");
    mkdirSync(target, { recursive: true });
    for (const [name, one] of this.#folders.get(id) ?? []) this.#restore(one, join(target, name), living);
  }

  /** Takes a folder that existed before as fully durable. */
  adopt(root: string): void {
    const names = new Map<string, Name>();
    for (const entry of readdirSync(root, { withFileTypes: true })) {
      const path = join(root, entry.name);
      const id = idOf(statSync(path, { bigint: true }));
      names.set(entry.name, { id, isFolder: entry.isDirectory() });
      if (entry.isDirectory()) this.adopt(path);
      else this.#files.set(id, readFileSync(path));
    }
    this.#folders.set(idOf(statSync(root, { bigint: true })), names);
  }
}

function livingIn(root: string, found = new Set<string>()): ReadonlySet<string> {
  found.add(idOf(statSync(root, { bigint: true })));
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    const path = join(root, entry.name);
    if (entry.isDirectory()) livingIn(path, found);
    else found.add(idOf(statSync(path, { bigint: true })));
  }
  return found;
}
