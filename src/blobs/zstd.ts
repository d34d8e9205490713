/** zstd as a stream, in the thread pool: frames to plain bytes, and plain bytes to a frame. */
import { constants, createZstdCompress, createZstdDecompress, type ZstdDecompress } from "node:zlib";
import { Fault } from "#base/fault.ts";

/** The largest window that a frame may ask for: 128 MiB, the limit of the zstd tools. */
const windowLogMax = 27;

/**
 * Decodes frames, and never yields more than `sizeBytesMax` plain bytes, so that a small message cannot expand to
 * terabytes. Takes any number of frames, including empty and skippable ones, and refuses bytes after the last one.
 */
export class ZstdUnpacker {
  readonly #stream: ZstdDecompress;
  readonly #sizeBytesMax: number;
  #out: Buffer[] = [];
  #packedBytes = 0;
  #plainBytes = 0;
  #error: Fault | undefined;
  #failed: ((error: Fault) => void) | undefined;
  /** Set at the end, and when bytes follow the last frame: the decoder stops reading there. */
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

  /** Returns the bytes that could be decoded so far. The caller may reuse its memory when it has resolved. */
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
      throw new Fault("invalid", "unpack zstd", { why: "bytes follow the last frame" });
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

/** Encodes to one frame at level 1: speed matters more here than saved bandwidth. */
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
    stream.emit("drain"); // releases a writer that would wait forever
  }
  await fed;
}
