/** Room that is kept on the disk itself, for when others have filled it: to be used up, and laid by again later. */
import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export class Spare {
  readonly #path: string;
  readonly sizeBytes: number;

  constructor(root: string, sizeBytes: number) {
    this.#path = join(root, "spare");
    this.sizeBytes = Math.floor(sizeBytes);
  }

  /** Whether it is there again. */
  layBy(): boolean {
    try {
      if (statSync(this.#path, { throwIfNoEntry: false })?.size === this.sizeBytes) return true;
      // Not zeros: some file systems would keep none of those.
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
