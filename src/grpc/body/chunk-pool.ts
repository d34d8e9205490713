/**
 * Memory for file contents that are sent, laid out as on the wire: HTTP/2 frames in a row, with space before each for
 * its header, and before the first for the message's prefix. So all of it is one write to the socket. Reused after it
 * was sent.
 *
 * Slow readers hold their memory for long. When all calls together hold much, the next ones get only a little.
 */
import { frameBytesDefault, frameHeaderBytes } from "#h2/frames/frame.ts";

/** In the first frame: space for the message's prefix and the fields before its data. */
export const chunkHeadBytes = 32;

const slotBytes = frameHeaderBytes + frameBytesDefault; // frames that every peer accepts
/** Callers get the smallest that is large enough: for each power of two of data there is a matching one. */
const framesOfClass = [1, 2, 3, 5, 9, 17, 33, 65] as const;
export const chunkFramesMax = framesOfClass[framesOfClass.length - 1] as number;

const mib = 1024 * 1024;
/** Held by all calls together: above this each call gets a single frame at a time. */
const heldBytesHigh = 48 * mib;
/** Free memory kept for reuse; more is left to the garbage collector. */
const freeBytesMax = 48 * mib;

let heldBytes = 0;
let freeBytes = 0;
const free: readonly Chunk[][] = framesOfClass.map(() => []);

export class Chunk {
  readonly memory: Buffer;
  /** The data part of each frame. */
  readonly slots: readonly Buffer[];
  readonly #class: number;

  private constructor(at: number) {
    this.#class = at;
    const frames = framesOfClass[at] as number;
    this.memory = Buffer.allocUnsafeSlow(frames * slotBytes);
    this.slots = Array.from({ length: frames }, (_, i) =>
      this.memory.subarray(i * slotBytes + frameHeaderBytes + (i === 0 ? chunkHeadBytes : 0), (i + 1) * slotBytes),
    );
  }

  /** For this many frames, or for one if much is held already. */
  static take(frames: number): Chunk {
    const at = heldBytes > heldBytesHigh ? 0 : framesOfClass.findIndex((some) => some >= frames);
    let chunk = free[at]?.pop();
    if (chunk) freeBytes -= chunk.memory.length;
    else chunk = new Chunk(at);
    heldBytes += chunk.memory.length;
    return chunk;
  }

  /** The caller must not use the memory after this. */
  giveBack(): void {
    heldBytes -= this.memory.length;
    if (freeBytes + this.memory.length > freeBytesMax) return;
    freeBytes += this.memory.length;
    free[this.#class]?.push(this);
  }

  /** How much data fits. */
  get dataBytes(): number {
    return chunkDataBytes(this.slots.length);
  }
}

/** How much data fits into this many frames. */
export const chunkDataBytes = (frames: number): number => frames * frameBytesDefault - chunkHeadBytes;

export const framesFor = (dataBytes: number): number => Math.ceil((dataBytes + chunkHeadBytes) / frameBytesDefault);

/** The slots that this much data takes up, the last of them cut. */
export function slotsFor({ slots }: Chunk, dataBytes: number): readonly Buffer[] {
  const frames = framesFor(dataBytes);
  const last = dataBytes - (frames === 1 ? 0 : chunkDataBytes(frames - 1));
  const slot = slots[frames - 1] as Buffer;
  if (frames === slots.length && last === slot.length) return slots;
  return [...slots.slice(0, frames - 1), slot.subarray(0, last)];
}
