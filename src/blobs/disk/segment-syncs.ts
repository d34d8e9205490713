/** Makes segments durable, each once for all who ask for it while it is under way. */
import { asDiskFault } from "./disk-fault.ts";
import { dataSynced } from "./log-writes.ts";
import type { Segment, Segments } from "./segments.ts";

export class SegmentSyncs {
  readonly #segments: Segments;
  readonly #underWay = new Map<Segment, { running: Promise<void>; next: Promise<void> | undefined }>();

  constructor(segments: Segments) {
    this.#segments = segments;
  }

  /** What was written to it so far. */
  async sync(number: number): Promise<void> {
    const segment = this.#segments.get(number);
    if (!segment || segment.syncedBytes >= segment.sizeBytes) return;
    const under = this.#underWay.get(segment);
    // One that is under way may have begun too early for us; all who come meanwhile share the next.
    if (under) return await (under.next ??= under.running.catch(() => {}).then(() => this.sync(number)));
    const running = this.#syncNow(segment).finally(() => this.#underWay.delete(segment));
    this.#underWay.set(segment, { running, next: undefined });
    await running;
  }

  async #syncNow(segment: Segment): Promise<void> {
    const { number, sizeBytes, cannotSync } = segment;
    if (cannotSync) throw asDiskFault(new Error("failed before"), "make log durable", { segment: number });
    const fd = this.#segments.acquire(number);
    try {
      await dataSynced(fd);
      segment.syncedBytes = sizeBytes;
    } catch (error) {
      segment.cannotSync = true;
      throw asDiskFault(error, "make log durable", { segment: number });
    } finally {
      this.#segments.release(number, fd);
    }
  }
}
