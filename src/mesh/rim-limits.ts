/** Limits on what the sockets accept at once. */

export type RimLimits = {
  readonly packetsPerSecondMax: number;
  /** Beyond this number, the stream that has been open longest is closed for a new one. */
  readonly streamsInMax: number;
  /** From one address; for IPv6, from one /64 network. */
  readonly streamsInFromOneHostMax: number;
  readonly streamsOutMax: number;
  /** Bytes held by all streams that are being read. */
  readonly streamBytesHeldMax: number;
};

export const rimLimitsDefault: RimLimits = {
  packetsPerSecondMax: 20_000,
  streamsInMax: 128,
  streamsInFromOneHostMax: 32,
  streamsOutMax: 64,
  streamBytesHeldMax: 64 * 1024 * 1024,
};

/** A token bucket: so many per second, and at most a second's worth at once. */
export class Bucket {
  readonly #perSecond: number;
  #level: number;
  #atMs = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
    this.#level = perSecond;
  }

  take(nowMs: number): boolean {
    const passedMs = Math.min(1_000, nowMs - this.#atMs);
    this.#atMs = nowMs;
    this.#level = Math.min(this.#perSecond, this.#level + (passedMs * this.#perSecond) / 1_000);
    if (this.#level < 1) return false;
    this.#level -= 1;
    return true;
  }
}
