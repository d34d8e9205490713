/**
 * Where a connection is cut: HTTP/2 from a server to its client is followed frame by frame, and the last frame that
 * gets through is DATA, or a part of it. So an answer is interrupted after some of its bytes, or after all of them and
 * before its end, when the client does not know that it has everything. Pure.
 */
import type { Random } from "#base/random.ts";
import { frameHeaderBytes, frameType } from "#h2/frames/frame.ts";

export type ScissorsOptions = {
  readonly random: Random;
  /** The share of DATA frames after which, or in which, there is a cut. */
  readonly share: number;
};

export class Scissors {
  readonly #options: ScissorsOptions;
  /** Of the header of the frame that is just coming. */
  readonly #header = Buffer.alloc(frameHeaderBytes);
  #headerBytes = 0;
  #payloadLeft = 0;
  #cutAfterBytes = Infinity;

  constructor(options: ScissorsOptions) {
    this.#options = options;
  }

  /** How many of these bytes get through before the cut; undefined: all of them, and there is no cut yet. */
  cutAt(bytes: Uint8Array): number | undefined {
    for (let at = 0; at < bytes.length;) {
      const step =
        this.#payloadLeft > 0
          ? Math.min(this.#payloadLeft, bytes.length - at)
          : Math.min(frameHeaderBytes - this.#headerBytes, bytes.length - at);
      if (step >= this.#cutAfterBytes) return at + this.#cutAfterBytes;
      if (this.#payloadLeft > 0) {
        this.#payloadLeft -= step;
        this.#cutAfterBytes -= step;
      } else this.#takeHeader(bytes.subarray(at, at + step));
      at += step;
    }
    return undefined;
  }

  #takeHeader(bytes: Uint8Array): void {
    this.#header.set(bytes, this.#headerBytes);
    this.#headerBytes += bytes.length;
    if (this.#headerBytes < frameHeaderBytes) return;
    this.#headerBytes = 0;
    this.#payloadLeft = this.#header.readUIntBE(0, 3);
    const { random, share } = this.#options;
    if (this.#header[3] !== frameType.data || this.#payloadLeft === 0 || !random.chance(share)) return;
    // Mostly after the last byte: the case that is rare otherwise.
    this.#cutAfterBytes = random.chance(0.7) ? this.#payloadLeft : 1 + random.below(this.#payloadLeft);
  }
}
