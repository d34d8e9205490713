/**
 * A range of a file as the messages of an answer: it is read directly into the memory that is sent, with space for
 * frame and message headers, so that no byte is copied on the way. While one piece is being sent the next is read.
 *
 *     async *read({ resourceName, readOffset, readLimit }) {
 *       await using file = await open(pathOf(resourceName));
 *       yield* fileMessages({ file, offset: readOffset, length: readLimit, head: readResponseHead });
 *     }
 *
 * F1 The file is not used any more when the iteration has ended, however it ended: then it may be closed.
 * F2 A call holds at most `chunksMax` pieces of `chunkBytes`, sent and unsent; they are reused for the next ones.
 */
import type { FileHandle } from "node:fs/promises";
import { assert } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import { Chunk, chunkDataBytes, chunkFramesMax, chunkHeadBytes, framesFor, slotsFor } from "./chunk-pool.ts";
import { prefixBytes } from "./message-reader.ts";
import { LaidMessage } from "#grpc/outgoing.ts";

/** The fields before the data in a message of this type, such as `readResponseHead` of wire/read-response.ts. */
export type DataHead = {
  readonly bytesMax: number;
  /** Writes them before the `dataBytes` that begin at `dataAt`; returns where they begin. */
  write(bytes: Uint8Array, dataAt: number, dataBytes: number): number;
};

export type FileRange = {
  readonly file: Pick<FileHandle, "readv">;
  readonly offset?: number;
  /** Left out: to the file's end. A file that ends before is "corrupt". */
  readonly length?: number;
  readonly head: DataHead;
  /** Roughly the data of one message, and of one read. Reading happens in another thread: smaller reads cost more. */
  readonly chunkBytes?: number;
  readonly chunksMax?: number;
};

const chunkBytesDefault = 512 * 1024;
const chunksMaxDefault = 3;

type FilledChunk = { readonly chunk: Chunk; readonly slots: readonly Buffer[]; readonly bytes: number };

export async function* fileMessages(range: FileRange): AsyncGenerator<LaidMessage, void, undefined> {
  const { file, offset = 0, length = Number.POSITIVE_INFINITY, head } = range;
  const { chunkBytes = chunkBytesDefault, chunksMax = chunksMaxDefault } = range;
  assert(prefixBytes + head.bytesMax <= chunkHeadBytes, "there is room for what stands before the data");
  const messageBytes = chunkDataBytes(Math.min(framesFor(chunkBytes - chunkHeadBytes), chunkFramesMax));
  const outstanding = new Outstanding(chunksMax);
  let left = length;
  let position = offset;

  async function readNext(): Promise<FilledChunk | undefined> {
    if (left <= 0 || !(await outstanding.waitForSlot())) return undefined;
    const chunk = Chunk.take(framesFor(Math.min(left, messageBytes)));
    try {
      const wanted = Math.min(left, messageBytes, chunk.dataBytes);
      const slots = slotsFor(chunk, wanted);
      const bytes = await readFully(file, slots, wanted, position);
      if (bytes < wanted && length !== Number.POSITIVE_INFINITY)
        throw new Fault("corrupt", "read file", { offset, length, why: "the file ends before" });
      left = bytes < wanted ? 0 : left - bytes;
      position += bytes;
      outstanding.took();
      return { chunk, slots: bytes < wanted && bytes > 0 ? slotsFor(chunk, bytes) : slots, bytes };
    } catch (error) {
      chunk.giveBack();
      throw error;
    }
  }
  const release = (chunk: Chunk): void => {
    chunk.giveBack();
    outstanding.gave();
  };

  let reading = readNext();
  try {
    for (;;) {
      const filled = await reading;
      if (!filled) return;
      const { chunk, bytes } = filled;
      reading = readNext();
      reading.catch(() => {}); // handled when it is awaited, here or at the end
      if (bytes === 0) release(chunk);
      else yield laid(filled, head, () => release(chunk));
    }
  } finally {
    outstanding.close();
    const unsent = await reading.catch(() => undefined); // F1
    if (unsent) release(unsent.chunk);
  }
}

function laid({ chunk, slots, bytes }: FilledChunk, head: DataHead, release: () => void): LaidMessage {
  const [first = chunk.memory, ...more] = slots;
  const dataAt = first.byteOffset - chunk.memory.byteOffset;
  const start = head.write(chunk.memory, dataAt, bytes);
  return new LaidMessage(chunk.memory.subarray(start, dataAt + first.length), release, more);
}

/** Reads until the buffer is full or the file has ended. */
async function readFully(
  file: FileRange["file"],
  into: readonly Buffer[],
  wanted: number,
  position: number,
): Promise<number> {
  let { bytesRead: got } = await file.readv(into, position);
  while (got < wanted) {
    const { bytesRead } = await file.readv(behind(into, got), position + got);
    if (bytesRead === 0) break;
    got += bytesRead;
  }
  return got;
}

/** What is left of these after the first bytes are removed. */
function behind(pieces: readonly Buffer[], bytes: number): readonly Buffer[] {
  let skip = bytes;
  return pieces.flatMap((piece) => {
    const left = piece.subarray(Math.min(skip, piece.length));
    skip -= piece.length - left.length;
    return left.length > 0 ? [left] : [];
  });
}

/** How many pieces a call holds; to get one more, wait until one comes back. */
class Outstanding {
  readonly #max: number;
  #count = 0;
  #closed = false;
  #wake: (() => void) | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  took(): void {
    this.#count += 1;
  }

  gave(): void {
    this.#count -= 1;
    this.#wake?.();
  }

  /** False: no more pieces are wanted. */
  async waitForSlot(): Promise<boolean> {
    while (this.#count >= this.#max && !this.#closed) {
      await new Promise<void>((wake) => (this.#wake = wake));
      this.#wake = undefined;
    }
    return !this.#closed;
  }

  close(): void {
    this.#closed = true;
    this.#wake?.();
  }
}
