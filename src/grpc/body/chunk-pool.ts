/**
 * Memory for what is read from files and sent, laid out as it leaves: frames of HTTP/2 one behind the other, with room
 * before each for its header, and before the first for what makes a message of the data. So all of it is one piece for
 * the socket. Used again when it has been sent.
 *
 * Callers that read slowly hold theirs for long. When all of them together hold much, the next ones are given little.
 */
import { frameBytesDefault, frameHeaderBytes } from "#h2/frames/frame.ts";

/** In the first frame: for the message's prefix and what stands before its data. */
export const chunkHeadBytes = 32;

const slotBytes = frameHeaderBytes + frameBytesDefault; // frames that any peer takes
/** Whoever asks gets the smallest that is large enough: for a power of two of data there is one that fits. */
const framesOfClass = [1, 2, 3, 5, 9, 17, 33, 65] as const;
export const chunkFramesMax = framesOfClass[framesOfClass.length - 1] as number;

const mib = 1024 * 1024;
/** Held by all calls together: beyond this each is given a single frame at a time. */
const heldBytesHigh = 48 * mib;
/** Of those that lie ready; more are left to the garbage collector. */
const freeBytesMax = 48 * mib;

let heldBytes = 0;
let freeBytes = 0;
const free: readonly Chunk[][] = framesOfClass.map(() => []);

export class Chunk {
  readonly memory: Buffer;
  /** What of each frame is data. */
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

  /** For so many frames, or, when much is held already, for one. */
  static take(frames: number): Chunk {
    const at = heldBytes > heldBytesHigh ? 0 : framesOfClass.findIndex((some) => some >= frames);
    let chunk = free[at]?.pop();
    if (chunk) freeBytes -= chunk.memory.length;
    else chunk = new Chunk(at);
    heldBytes += chunk.memory.length;
    return chunk;
  }

  /** Whoever took it must not look at it any more. */
  giveBack(): void {
    heldBytes -= this.memory.length;
    if (freeBytes + this.memory.length > freeBytesMax) return;
    freeBytes += this.memory.length;
    free[this.#class]?.push(this);
  }

  /** Data that fits. */
  get dataBytes(): number {
    return chunkDataBytes(this.slots.length);
  }
}

/** Data that fits into so many frames. */
export const chunkDataBytes = (frames: number): number => frames * frameBytesDefault - chunkHeadBytes;

export const framesFor = (dataBytes: number): number => Math.ceil((dataBytes + chunkHeadBytes) / frameBytesDefault);

/** The slots that so much data takes up, the last of them cut. */
export function slotsFor({ slots }: Chunk, dataBytes: number): readonly Buffer[] {
  const frames = framesFor(dataBytes);
  const last = dataBytes - (frames === 1 ? 0 : chunkDataBytes(frames - 1));
  const slot = slots[frames - 1] as Buffer;
  if (frames === slots.length && last === slot.length) return slots;
  return [...slots.slice(0, frames - 1), slot.subarray(0, last)];
}
