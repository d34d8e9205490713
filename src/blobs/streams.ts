/**
 * Live output of running tasks. The holder of a claim appends at offsets, any node can read while the stream grows, and
 * committing the task seals it into a blob. Never stored as database rows.
 *
 * B8 Acknowledged bytes can be read from every node until the stream is removed.
 * B9 A writer whose token is older than one that has written (or sealed) is refused.
 */
import type { Digest } from "#base/digest.ts";

export type StreamKey = {
  readonly tenant: string;
  readonly task: string;
  readonly token: number;
  readonly name: string;
};

export type Streams = {
  /** How long a writer should collect bytes before it appends them; left out: it may decide. */
  readonly everyMs?: number;
  /**
   * Durable when it resolves. `offset` is the number of bytes acknowledged before: bytes that are already there are
   * skipped, a gap is "invalid", an old token is "stale".
   */
  append(key: StreamKey, offset: number, bytes: Uint8Array): Promise<void>;
  /**
   * Yields the bytes from `offset` on, and waits for more until the stream is sealed or removed, or `signal` aborts.
   */
  read(key: StreamKey, offset: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** The stream's size, and its digest if it is sealed. Undefined if nothing was ever appended. */
  state(key: StreamKey): Promise<{ readonly sizeBytes: number; readonly sealed?: Digest } | undefined>;
  /** Writes the bytes to the store as a blob and ends the stream; sealing again returns the same digest. */
  seal(key: StreamKey): Promise<Digest>;
  remove(key: StreamKey): Promise<void>;
};
