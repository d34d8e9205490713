/**
 * What running work says, while it says it: live logs. Written by the holder of a claim at offsets, readable from any
 * node while it grows, sealed into a blob when the work is committed. Never rows in a database.
 *
 * B8 What was acknowledged can be read, from every node, until the stream is removed.
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
  /**
   * Durable when it resolves. `offset` is how much was acknowledged before: bytes that are there already are passed
   * over, a gap is "invalid", a stale token "stale".
   */
  append(key: StreamKey, offset: number, bytes: Uint8Array): Promise<void>;
  /** From `offset` on: what is there, then what comes, until the stream is sealed or removed or `signal` says so. */
  read(key: StreamKey, offset: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** How much is there, and whether more may come. Undefined: never written to. */
  state(key: StreamKey): Promise<{ readonly sizeBytes: number; readonly sealed?: Digest } | undefined>;
  /** Puts the bytes into the store under their digest and ends the stream; sealing again gives the same digest. */
  seal(key: StreamKey): Promise<Digest>;
  remove(key: StreamKey): Promise<void>;
};
