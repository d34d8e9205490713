/** When the table is written down: when the log has grown by so much, and at the end. */
import { writeCheckpoint } from "./checkpoint.ts";
import type { Core } from "./core.ts";
import type { Recovered } from "./recovery.ts";

export class Checkpoints {
  readonly #core: Core;
  #writing: Promise<void> | undefined;
  /** Log since the last one. */
  #sequence: number;
  #segment = 0;
  #sizeBytes = 0;
  #isDue: boolean;

  constructor(core: Core, recovered: Recovered) {
    this.#core = core;
    this.#sequence = recovered.sequence;
    this.#segment = core.log.applied.segment;
    this.#isDue = !recovered.fromCheckpoint || recovered.scannedBytes > core.options.segmentBytes;
  }

  /** A full segment since the last one is worth one. */
  async writeIfDue(): Promise<void> {
    if (this.#isDue || this.#core.log.applied.segment > this.#segment) await this.write();
  }

  async write(): Promise<void> {
    if (this.#writing) return await this.#writing;
    this.#writing = this.#write().finally(() => (this.#writing = undefined));
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { applied } = this.#core.log;
    try {
      const sizeBytes = await writeCheckpoint(this.#core.root, this.#core.holdings, applied);
      this.#core.room.give(this.#sizeBytes);
      this.#core.room.takeOwn(sizeBytes);
      this.#sizeBytes = sizeBytes;
      this.#sequence = applied.sequence;
      this.#segment = applied.segment;
      this.#isDue = false;
    } catch (error) {
      // The old one is as good; a start only takes longer.
      this.#core.options.report("the checkpoint could not be written", { why: String(error) });
    }
  }

  async close(): Promise<void> {
    await this.#writing;
    if (this.#core.log.applied.sequence !== this.#sequence || this.#isDue) await this.#write();
  }
}
