/**
 * Disk space held in reserve, for when other programs fill the disk: released when needed, and allocated again later.
 */
import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export class Spare {
  readonly #path: string;
  readonly sizeBytes: number;

  constructor(root: string, sizeBytes: number) {
    this.#path = join(root, "spare");
    this.sizeBytes = Math.floor(sizeBytes);
  }

  /** Allocates the reserve. True if it is there. */
  layBy(): boolean {
    try {
      if (statSync(this.#path, { throwIfNoEntry: false })?.size === this.sizeBytes) return true;
      // Not zeros: some file systems allocate nothing for those.
      writeFileSync(this.#path, Buffer.alloc(this.sizeBytes, "spare "), { mode: 0o600 });
      return true;
    } catch {
      this.useUp();
      return false;
    }
  }

  useUp(): void {
    rmSync(this.#path, { force: true });
  }
}
