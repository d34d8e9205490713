/**
 * Limits the rate of frames that are legal but cost us work: each kind has a bucket, and too many end the connection.
 */
import { ConnectionError, errorCode } from "#h2/frames/error-codes.ts";
import { Bucket, type H2Limits } from "./limits.ts";

const words = {
  peerResets: "streams reset by the peer",
  provokedResets: "streams that had to be reset",
  settingsFrames: "SETTINGS frames",
  pings: "PING frames",
  priorityFrames: "PRIORITY or unknown frames",
  emptyFrames: "empty DATA frames",
  windowUpdates: "WINDOW_UPDATE frames",
} as const satisfies Partial<Record<keyof H2Limits, string>>;

export type Flood = keyof typeof words;

export class FloodGuard {
  readonly #buckets: Readonly<Record<Flood, Bucket>>;
  readonly #pingBurst: number;
  #paidDataBytes = 0;
  #paidHeaders = 0;

  constructor(limits: H2Limits, nowMs: number) {
    this.#pingBurst = limits.pings.burst;
    this.#buckets = {
      peerResets: new Bucket(limits.peerResets, nowMs),
      provokedResets: new Bucket(limits.provokedResets, nowMs),
      settingsFrames: new Bucket(limits.settingsFrames, nowMs),
      pings: new Bucket(limits.pings, nowMs),
      priorityFrames: new Bucket(limits.priorityFrames, nowMs),
      emptyFrames: new Bucket(limits.emptyFrames, nowMs),
      windowUpdates: new Bucket(limits.windowUpdates, nowMs),
    };
  }

  count(flood: Flood, nowMs: number): void {
    if (!this.#buckets[flood].take(nowMs)) throw calm(`too many ${words[flood]}`);
  }

  /** The data that we sent pays for the window updates and pings that it may cause. */
  sent(dataBytes: number, headers: number): void {
    if (dataBytes === this.#paidDataBytes && headers === this.#paidHeaders) return;
    this.#buckets.windowUpdates.refund((dataBytes - this.#paidDataBytes) / 1024 + headers - this.#paidHeaders);
    this.#buckets.pings.refund(this.#pingBurst);
    this.#paidDataBytes = dataBytes;
    this.#paidHeaders = headers;
  }
}

export const calm = (why: string): ConnectionError => new ConnectionError(errorCode.enhanceYourCalm, why);
