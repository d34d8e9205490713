/** zstd in pieces and off the loop: what is sent as frames becomes plain bytes, and the other way round. */
import { constants, createZstdCompress, createZstdDecompress, type ZstdDecompress } from "node:zlib";
import { Fault } from "#base/fault.ts";

/** A frame may ask for so much memory at most: 128 MiB is what the format's own tools allow. */
const windowLogMax = 27;

/**
 * Frames in, plain bytes out, never more than `sizeBytesMax` of them: a small message that unpacks to terabytes stops
 * there. Any number of frames, empty and skippable ones among them; what follows the last one is refused.
 */
export class ZstdUnpacker {
  readonly #stream: ZstdDecompress;
  readonly #sizeBytesMax: number;
  #out: Buffer[] = [];
  #packedBytes = 0;
  #plainBytes = 0;
  #error: Fault | undefined;
  #failed: ((error: Fault) => void) | undefined;
  /** Also when something follows the last frame: the decoder stops there and reads no more. */
  #over = false;
  #ended: (() => void) | undefined;

  constructor(sizeBytesMax: number) {
    this.#sizeBytesMax = sizeBytesMax;
    this.#stream = createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: windowLogMax } });
    this.#stream.on("data", (part: Buffer) => {
      this.#plainBytes += part.length;
      if (this.#plainBytes > sizeBytesMax) return this.#fail("more bytes than the digest says");
      this.#out.push(part);
    });
    this.#stream.on("error", (error) => this.#fail(error.message));
    this.#stream.on("end", () => {
      this.#over = true;
      this.#ended?.();
    });
  }

  /** What could be unpacked by now. The bytes are the caller's again when it has resolved. */
  async push(bytes: Uint8Array): Promise<readonly Buffer[]> {
    this.#packedBytes += bytes.length;
    if (this.#over) return [];
    await this.#step((done) => {
      this.#ended = done;
      this.#stream.write(bytes, () => done());
    });
    return this.#taken();
  }

  async end(): Promise<readonly Buffer[]> {
    if (this.#packedBytes === 0) {
      this.close();
      return [];
    }
    if (!this.#over)
      await this.#step((done) => {
        this.#ended = done;
        this.#stream.end();
      });
    if (this.#stream.bytesWritten !== this.#packedBytes)
      throw new Fault("invalid", "unpack zstd", { why: "there is something after the last frame" });
    return this.#taken();
  }

  close(): void {
    this.#stream.destroy();
  }

  #taken(): readonly Buffer[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  async #step(start: (done: () => void) => void): Promise<void> {
    this.#throwIfFailed();
    await new Promise<void>((resolve, reject) => {
      this.#failed = reject;
      start(() => resolve());
    });
    this.#failed = undefined;
    this.#throwIfFailed();
  }

  #throwIfFailed(): void {
    if (this.#error) throw this.#error;
  }

  #fail(why: string): void {
    if (this.#error) return;
    this.#error = new Fault("invalid", "unpack zstd", { why, sizeBytesMax: this.#sizeBytesMax });
    this.#out = [];
    this.#stream.destroy();
    this.#failed?.(this.#error);
  }
}

export async function* unpacked(
  source: AsyncIterable<Uint8Array> | Uint8Array,
  sizeBytesMax: number,
): AsyncGenerator<Uint8Array> {
  const unpacker = new ZstdUnpacker(sizeBytesMax);
  try {
    for await (const part of source instanceof Uint8Array ? [source] : source) yield* await unpacker.push(part);
    yield* await unpacker.end();
  } finally {
    unpacker.close();
  }
}

/** One frame. Level 1: a cache is asked for bytes more often than it is short of wire. */
export async function* packed(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const stream = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 1 } });
  const feed = async (): Promise<void> => {
    for await (const part of source)
      if (!stream.write(part)) await new Promise<void>((resolve) => stream.once("drain", resolve));
    stream.end();
  };
  const fed = feed().catch((error: unknown) => void stream.destroy(error as Error));
  try {
    yield* stream as AsyncIterable<Buffer>;
  } finally {
    stream.destroy();
    stream.emit("drain"); // lets go of a feeder that waits for nobody
  }
  await fed;
}
