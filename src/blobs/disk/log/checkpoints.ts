/** Decides when to write a checkpoint: after so much growth of the log, and at the end. */
import { writeCheckpoint } from "./checkpoint.ts";
import type { Core } from "#blobs/disk/core.ts";
import { rememberBoot } from "./power-loss.ts";
import type { Recovered } from "./recovery.ts";

export class Checkpoints {
  readonly #core: Core;
  #writing: Promise<void> | undefined;
  /** The log's sequence number at the last checkpoint. */
  #sequence: number;
  #loggedBytes: number;
  #sizeBytes = 0;
  #isDue: boolean;

  /** `isNeeded`: the log does not contain all that is known. */
  constructor(core: Core, recovered: Recovered, isNeeded: boolean) {
    this.#core = core;
    this.#sequence = recovered.sequence;
    this.#loggedBytes = core.log.writtenBytes;
    this.#isDue = isNeeded || !recovered.fromCheckpoint || recovered.scannedBytes > core.options.segmentBytes;
  }

  /**
   * Writes one when the log has grown by a checkpoint's size: then it costs little compared with the writes themselves.
   */
  async writeIfDue(): Promise<void> {
    const { log, options, holdings } = this.#core;
    const growthBytes = Math.max(options.segmentBytes, holdings.table.sizeBytes);
    if (this.#isDue || log.writtenBytes - this.#loggedBytes >= growthBytes) await this.write();
  }

  async write(): Promise<void> {
    if (this.#writing) return await this.#writing;
    this.#writing = this.#write().finally(() => (this.#writing = undefined));
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { root, holdings, options } = this.#core;
    const { applied, writtenBytes } = this.#core.log;
    try {
      const sizeBytes = await writeCheckpoint(root, holdings, applied, options.syncs);
      this.#core.budget.give(this.#sizeBytes);
      this.#core.budget.takeOwn(sizeBytes);
      this.#sizeBytes = sizeBytes;
      this.#sequence = applied.sequence;
      this.#loggedBytes = writtenBytes;
      this.#isDue = false;
      this.#core.checkpointSegment = applied.segment;
      rememberBoot(this.#core.root);
    } catch (error) {
      // The previous checkpoint still counts; only the next start takes longer.
      this.#core.options.report("the checkpoint could not be written", { why: String(error) });
    }
  }

  async close(): Promise<void> {
    await this.#writing;
    if (this.#core.log.applied.sequence !== this.#sequence || this.#isDue) await this.#write();
  }
}
