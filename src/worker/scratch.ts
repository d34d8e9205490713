import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** A temporary folder for one attempt, deleted with it. */
export class ScratchDir implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(root: string, name: string): Promise<ScratchDir> {
    await mkdir(root, { recursive: true, mode: 0o700 });
    return new ScratchDir(await mkdtemp(join(root, `${name}-`)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A process that outlives its attempt by a moment may still write there; retrying is enough.
    await rm(this.path, { recursive: true, force: true, maxRetries: 3, retryDelay: 50 });
  }
}

/** Removes folders of attempts of a crashed process. Nothing may run below the root yet. */
export async function reclaimScratch(root: string): Promise<number> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  const left = await readdir(root);
  for (const name of left) await rm(join(root, name), { recursive: true, force: true, maxRetries: 3 });
  return left.length;
}
