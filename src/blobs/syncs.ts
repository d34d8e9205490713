/** How bytes and names are made to survive a power failure. A port, so that tests see what was synced and when. */
import { fdatasync } from "node:fs";
import { open } from "node:fs/promises";

export type Syncs = {
  /** Syncs the bytes of an open file; `path` is its current name. */
  file(fd: number, path: string): Promise<void>;
  /** Syncs the names in a folder. */
  folder(path: string): Promise<void>;
};

export const realSyncs: Syncs = {
  file: (fd) => new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve()))),
  async folder(path) {
    await using folder = await open(path, "r");
    await folder.sync().catch((error: NodeJS.ErrnoException) => {
      // Some systems (Windows) cannot sync folders.
      if (!["EPERM", "EINVAL", "EISDIR"].includes(error.code ?? "")) throw error;
    });
  },
};
