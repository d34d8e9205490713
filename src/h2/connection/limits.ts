/** Every limit on counts, sizes, rates and times of an HTTP/2 connection. All have defaults. */

/** A token bucket: the burst, and how many more per second. */
export type Rate = { readonly burst: number; readonly perSecond: number };

export type H2Limits = {
  /** Streams that the peer may have open at once; more are refused with REFUSED_STREAM. */
  readonly streamsMax: number;
  /** Client: requests that may wait for a free stream; more throw "exhausted". */
  readonly streamsWaitingMax: number;
  /** Header list as RFC 9113 section 6.5.2 counts it; a larger one resets its stream with ENHANCE_YOUR_CALM. */
  readonly headerListBytesMax: number;
  /** Fields of one header list; more reset the stream with ENHANCE_YOUR_CALM. */
  readonly headerCountMax: number;
  /** Compressed header block over all its frames; a larger one ends the connection. */
  readonly headerBlockBytesMax: number;
  /** CONTINUATION frames of one header block; more end the connection. */
  readonly continuationsMax: number;
  /** HPACK table that the peer's encoder may use, and that ours uses at most. */
  readonly headerTableBytesMax: number;
  /** Payload of a frame that the peer may send; larger ones end the connection with FRAME_SIZE_ERROR. */
  readonly frameBytesMax: number;
  /** Initial receive window of a stream: how much it may leave unconsumed. */
  readonly streamWindowBytes: number;
  /** The most it grows to, for a stream that is consumed quickly. */
  readonly streamWindowBytesMax: number;
  /** The same for the connection: how much all its streams together may leave unconsumed. */
  readonly connectionWindowBytes: number;
  /** The most it grows to; if this is below the initial size, it does not grow. */
  readonly connectionWindowBytesMax: number;
  /** A window doubles when half of it was used up in less time than this. */
  readonly windowGrowthMs: number;
  /** Bytes that a stream may hold unsent before `write` asks its caller to wait. */
  readonly streamSendBytesHigh: number;
  /** DATA is put into the output only while less than this waits there for the socket. */
  readonly outputBytesHigh: number;
  /** Unsent bytes other than DATA (answers to the peer's frames) at which reading pauses. */
  readonly controlBytesHigh: number;
  /** The same, at which the connection ends: a peer that sends requests and never reads the answers. */
  readonly controlBytesMax: number;
  /** How much one stream may send before the next one has its turn. */
  readonly quantumBytes: number;
  /** Streams that the peer opens and resets (rapid reset). */
  readonly peerResets: Rate;
  /** Streams that the peer makes us reset: malformed requests, windows exceeded, refused streams. */
  readonly provokedResets: Rate;
  /** SETTINGS, each of which has to be acknowledged. */
  readonly settingsFrames: Rate;
  /** PINGs while we send nothing; a peer that receives data may measure the connection. */
  readonly pings: Rate;
  /** PRIORITY and frames of unknown types: everything that is ignored. */
  readonly priorityFrames: Rate;
  /** DATA without bytes and without end. */
  readonly emptyFrames: Rate;
  /** WINDOW_UPDATEs; 1 KiB of sent DATA pays for one. */
  readonly windowUpdates: Rate;
  /** From the start to the peer's preface and SETTINGS. */
  readonly prefaceMs: number;
  /** From our SETTINGS to their acknowledgement; then SETTINGS_TIMEOUT. */
  readonly settingsAckMs: number;
  /** From the first byte of a header block (or any other frame but DATA) to its last (slow loris). */
  readonly frameMs: number;
  /** A connection without streams for this long is closed. */
  readonly idleMs: number;
  /** After this long without a byte from the peer a PING checks whether it is still there (half-open). */
  readonly keepaliveMs: number;
  /** After this long without an answer the connection ends. */
  readonly keepaliveAckMs: number;
  /** A stream that has had data and no window for this long is reset (slow reader). */
  readonly sendStallMs: number;
  /** If the socket accepts nothing for this long, the connection ends. */
  readonly writeStallMs: number;
  /** From a drain's start to its end, even if streams are still open. */
  readonly drainMs: number;
  /** How many requests that were answered before they had ended may still be arriving, */
  readonly lateRequestsMax: number;
  /** how many more bytes of each are accepted, */
  readonly lateRequestBytesMax: number;
  /** and for how long. */
  readonly lateRequestMs: number;
};

const kib = 1024;
const mib = 1024 * kib;

export const h2LimitsDefault: H2Limits = {
  streamsMax: 256,
  streamsWaitingMax: 10_000,
  headerListBytesMax: 32 * kib,
  headerCountMax: 200,
  headerBlockBytesMax: 64 * kib,
  continuationsMax: 8,
  headerTableBytesMax: 4 * kib,
  frameBytesMax: 16 * kib,
  streamWindowBytes: 256 * kib,
  streamWindowBytesMax: 4 * mib,
  connectionWindowBytes: 1 * mib,
  connectionWindowBytesMax: 16 * mib,
  windowGrowthMs: 50,
  streamSendBytesHigh: 256 * kib,
  outputBytesHigh: 256 * kib,
  controlBytesHigh: 128 * kib,
  controlBytesMax: 1 * mib,
  quantumBytes: 16 * kib,
  peerResets: { burst: 500, perSecond: 100 },
  provokedResets: { burst: 200, perSecond: 20 },
  settingsFrames: { burst: 50, perSecond: 2 },
  pings: { burst: 100, perSecond: 10 },
  priorityFrames: { burst: 1_000, perSecond: 100 },
  emptyFrames: { burst: 200, perSecond: 20 },
  windowUpdates: { burst: 10_000, perSecond: 1_000 },
  prefaceMs: 10_000,
  settingsAckMs: 20_000,
  frameMs: 10_000,
  idleMs: 600_000,
  keepaliveMs: 60_000,
  keepaliveAckMs: 20_000,
  sendStallMs: 120_000,
  writeStallMs: 60_000,
  drainMs: 30_000,
  lateRequestsMax: 100,
  lateRequestBytesMax: 64 * kib,
  lateRequestMs: 1_000,
};

/** Counts against a Rate. Starts full. */
export class Bucket {
  readonly #rate: Rate;
  #tokens: number;
  #filledAtMs: number;

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#filledAtMs = nowMs;
  }

  /** False when there were too many. */
  take(nowMs: number): boolean {
    const { burst, perSecond } = this.#rate;
    const sinceMs = Math.max(0, nowMs - this.#filledAtMs);
    this.#tokens = Math.min(burst, this.#tokens + (sinceMs * perSecond) / 1_000) - 1;
    this.#filledAtMs = nowMs;
    return this.#tokens >= 0;
  }

  refund(tokens: number): void {
    if (this.#tokens < this.#rate.burst) this.#tokens = Math.min(this.#rate.burst, this.#tokens + tokens);
  }
}
