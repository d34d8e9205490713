/** Reads what a task prints from the node that runs it, while it runs. */
import type { StreamKey } from "#blobs/streams.ts";

export type LiveSource = {
  /**
   * What there is from the offset on, a part of it at most, as soon as there is some; nothing when the time is over.
   * Undefined: there is no such worker, or it cannot be reached.
   */
  pull(worker: string, key: StreamKey, offset: number, options: PullOptions): Promise<Uint8Array | undefined>;
  /** How many bytes of it there are now; undefined if there is no such stream. "unavailable" if that is not known. */
  size(worker: string, key: StreamKey, signal: AbortSignal): Promise<number | undefined>;
};

export type PullOptions = { readonly waitMs: number; readonly signal: AbortSignal };
