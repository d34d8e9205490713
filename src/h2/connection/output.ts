/**
 * What waits to be written to the socket. Small frames are written one after the other into a pooled buffer; large
 * payloads stay where they are and become segments of their own, so that bulk data is never copied here.
 *
 * The writer takes everything as one batch, writes it, and calls `done`. Only then are the pooled buffers reused and
 * the owners of the payloads told (`release`).
 */

/** Called when the handed-over bytes are no longer needed here, sent or not. */
export type Release = () => void;

export type Batch = {
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
  readonly controlBytes: number;
  readonly pooled: readonly Buffer[];
  readonly releases: readonly Release[];
};

const bufferBytes = 32 * 1024;
/** Free buffers kept for reuse; more are left to the garbage collector. 4 MiB for the whole process. */
const poolMax = 128;
const pool: Buffer[] = [];

const empty = Buffer.alloc(0);
const none: readonly never[] = [];

export class Output {
  /** Frames are written to buffer[end...] after `reserve`; the writer then moves `end`. */
  buffer: Buffer = empty;
  end = 0;
  #start = 0;
  #chunks: Uint8Array[] = [];
  #pooled: Buffer[] = [];
  #releases: Release[] = [];
  #sealedBytes = 0;
  #inFlightBytes = 0;
  #inFlightControlBytes = 0;
  /** The waiting bytes that are not DATA. Counted by the code that adds them. */
  controlBytes = 0;

  /** Waiting to be taken. */
  get bytes(): number {
    return this.#sealedBytes + this.end - this.#start;
  }

  /** Waiting, or taken and not yet done. */
  get bytesUnsent(): number {
    return this.#inFlightBytes + this.#sealedBytes + this.end - this.#start;
  }

  get controlBytesUnsent(): number {
    return this.#inFlightControlBytes + this.controlBytes;
  }

  /** Makes sure that this many bytes fit at `end`. */
  reserve(bytes: number): void {
    if (this.end + bytes > this.buffer.length) this.#nextBuffer(bytes);
  }

  #nextBuffer(bytes: number): void {
    this.#seal();
    this.#keep();
    this.buffer = bytes > bufferBytes ? Buffer.allocUnsafeSlow(bytes) : (pool.pop() ?? newBuffer());
    this.end = 0;
    this.#start = 0;
  }

  #seal(): void {
    if (this.end === this.#start) return;
    this.#chunks.push(this.buffer.subarray(this.#start, this.end));
    this.#sealedBytes += this.end - this.#start;
    this.#start = this.end;
  }

  /** A full buffer goes back to the pool with the batch that contains its bytes. */
  #keep(): void {
    if (this.buffer.length === bufferBytes) this.#pooled.push(this.buffer);
    this.buffer = empty;
  }

  /** Adds bytes[start, end) without copying. Pieces that are adjacent in memory are merged. */
  addSegment(bytes: Uint8Array, start: number, end: number): void {
    this.#seal();
    const last = this.#chunks.at(-1);
    this.#sealedBytes += end - start;
    if (
      last !== undefined &&
      last.buffer === bytes.buffer &&
      last.byteOffset + last.length === bytes.byteOffset + start
    ) {
      this.#chunks[this.#chunks.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + end - start);
      return;
    }
    this.#chunks.push(bytes.subarray(start, end));
  }

  /** Called when everything up to here has been sent, or dropped. */
  addRelease(release: Release): void {
    this.#releases.push(release);
  }

  /** Everything that waits, or undefined. */
  take(): Batch | undefined {
    const bytes = this.bytes;
    if (bytes === 0 && this.#releases.length === 0) return undefined;
    this.#seal();
    this.#keep();
    this.end = 0;
    this.#start = 0;
    const batch = {
      chunks: this.#chunks,
      bytes,
      controlBytes: this.controlBytes,
      pooled: this.#pooled,
      releases: this.#releases.length === 0 ? none : this.#releases,
    };
    this.#chunks = [];
    this.#pooled = [];
    if (batch.releases !== none) this.#releases = [];
    this.#sealedBytes = 0;
    this.controlBytes = 0;
    this.#inFlightBytes += bytes;
    this.#inFlightControlBytes += batch.controlBytes;
    return batch;
  }

  /** The batch has been written, or never will be. */
  done(batch: Batch): void {
    this.#inFlightBytes -= batch.bytes;
    this.#inFlightControlBytes -= batch.controlBytes;
    for (const buffer of batch.pooled) if (pool.length < poolMax) pool.push(buffer);
    for (const release of batch.releases) release();
  }
}

const newBuffer = (): Buffer => Buffer.allocUnsafeSlow(bufferBytes);
