/** How bytes and names are made to outlive a loss of power. A port: tests look at what was made durable, and when. */
import { fdatasync } from "node:fs";
import { open } from "node:fs/promises";

export type Syncs = {
  /** The bytes of an open file; `path` is its name at the time. */
  file(fd: number, path: string): Promise<void>;
  /** The names in a folder. */
  folder(path: string): Promise<void>;
};

export const realSyncs: Syncs = {
  file: (fd) => new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve()))),
  async folder(path) {
    await using folder = await open(path, "r");
    await folder.sync().catch((error: NodeJS.ErrnoException) => {
      // Some systems (Windows) have no durable folders to ask for.
      if (!["EPERM", "EINVAL", "EISDIR"].includes(error.code ?? "")) throw error;
    });
  },
};
