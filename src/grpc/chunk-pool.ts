/**
 * Memory for what is read from files and sent, laid out as it leaves: frames of HTTP/2 one behind the other, with room
 * before each for its header, and before the first for what makes a message of the data. So all of it is one piece for
 * the socket. Used again when it has been sent.
 */
import { frameBytesDefault, frameHeaderBytes } from "#h2/frame.ts";

/** In the first frame: for the message's prefix and what stands before its data. */
export const chunkHeadBytes = 32;

const slotBytes = frameHeaderBytes + frameBytesDefault; // frames that any peer takes
/** Powers of two, up to 1 MiB; whoever asks gets the next that is large enough. */
const classes = 7;
export const chunkFramesMax = 2 ** (classes - 1);
/** Of those that lie ready, so much memory; more is left to the garbage collector. */
const keptBytesMax = 16 * 1024 * 1024;

let keptBytes = 0;
const free: readonly Chunk[][] = Array.from({ length: classes }, () => []);

export class Chunk {
  readonly memory: Buffer;
  /** What of each frame is data. */
  readonly slots: readonly Buffer[];

  constructor(frames: number) {
    this.memory = Buffer.allocUnsafeSlow(frames * slotBytes);
    this.slots = Array.from({ length: frames }, (_, i) =>
      this.memory.subarray(i * slotBytes + frameHeaderBytes + (i === 0 ? chunkHeadBytes : 0), (i + 1) * slotBytes),
    );
  }

  static take(frames: number): Chunk {
    const at = Math.ceil(Math.log2(frames));
    const chunk = free[at]?.pop();
    if (!chunk) return new Chunk(2 ** at);
    keptBytes -= chunk.memory.length;
    return chunk;
  }

  /** Whoever took it must not look at it any more. */
  giveBack(): void {
    if (keptBytes + this.memory.length > keptBytesMax) return;
    keptBytes += this.memory.length;
    free[Math.log2(this.slots.length)]?.push(this);
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
