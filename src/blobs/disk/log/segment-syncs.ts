/** Syncs segments; callers that ask during a sync share the next one. */
import type { Syncs } from "#blobs/syncs.ts";
import { asDiskFault } from "#blobs/disk/disk-fault.ts";
import type { Segment, Segments } from "./segments.ts";

export class SegmentSyncs {
  readonly #segments: Segments;
  readonly #syncs: Syncs;
  readonly #underWay = new Map<Segment, { running: Promise<void>; next: Promise<void> | undefined }>();

  constructor(segments: Segments, syncs: Syncs) {
    this.#segments = segments;
    this.#syncs = syncs;
  }

  /** Syncs what was written to the segment so far. */
  async sync(number: number): Promise<void> {
    const segment = this.#segments.get(number);
    if (!segment || segment.syncedBytes >= segment.sizeBytes) return;
    const under = this.#underWay.get(segment);
    // A running sync may have begun before our write, so wait for the next one, shared with all who come meanwhile.
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
      await this.#syncs.file(fd, this.#segments.path(number));
      // Without its name the file would not be found again.
      if (!segment.isNameSynced) await this.#syncs.folder(this.#segments.folder);
      segment.isNameSynced = true;
      segment.syncedBytes = sizeBytes;
    } catch (error) {
      segment.cannotSync = true;
      throw asDiskFault(error, "make log durable", { segment: number });
    } finally {
      this.#segments.release(number, fd);
    }
  }
}
