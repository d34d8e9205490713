/** When the table is written down: when the log has grown by so much, and at the end. */
import { writeCheckpoint } from "./checkpoint.ts";
import type { Core } from "#blobs/disk/core.ts";
import { rememberBoot } from "./power-loss.ts";
import type { Recovered } from "./recovery.ts";

export class Checkpoints {
  readonly #core: Core;
  #writing: Promise<void> | undefined;
  /** Where the log was at the last one. */
  #sequence: number;
  #loggedBytes: number;
  #sizeBytes = 0;
  #isDue: boolean;

  /** `isNeeded`: something is known that the log does not say. */
  constructor(core: Core, recovered: Recovered, isNeeded: boolean) {
    this.#core = core;
    this.#sequence = recovered.sequence;
    this.#loggedBytes = core.log.writtenBytes;
    this.#isDue = isNeeded || !recovered.fromCheckpoint || recovered.scannedBytes > core.options.segmentBytes;
  }

  /** When the log has grown by as much as one takes: then it costs little beside what was written anyway. */
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
      this.#core.room.give(this.#sizeBytes);
      this.#core.room.takeOwn(sizeBytes);
      this.#sizeBytes = sizeBytes;
      this.#sequence = applied.sequence;
      this.#loggedBytes = writtenBytes;
      this.#isDue = false;
      this.#core.checkpointSegment = applied.segment;
      rememberBoot(this.#core.root);
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
