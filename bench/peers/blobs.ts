/** Shared by the servers of `bench edge`: blobs that are read and written with ByteStream. */
import { createHash, type Hash } from "node:crypto";
import { open, type FileHandle } from "node:fs/promises";

/** Before the data of a chunk: space for what a server puts in front of it. */
export const chunkHeadBytes = 32;

export const chunkSizes = { "64K": 64 * 1024, "1M": 1024 * 1024 } as const;
export type ChunkSize = keyof typeof chunkSizes;

/** The name of a resource to read contains the size of its chunks. */
export const chunkBytesOf = (resourceName: string): number =>
  chunkSizes[resourceName as ChunkSize] ?? chunkSizes["64K"];

/** As a store would read them: into memory that is reused after it was sent. */
export class ChunkPool {
  readonly #chunkBytes: number;
  readonly #free: Buffer[] = [];

  constructor(chunkBytes: number) {
    this.#chunkBytes = chunkBytes;
  }

  /** The data begins at `chunkHeadBytes`. */
  take(): Buffer {
    return this.#free.pop() ?? Buffer.alloc(chunkHeadBytes + this.#chunkBytes, 7);
  }

  giveBack(chunk: Buffer): void {
    if (this.#free.length < 64) this.#free.push(chunk);
  }
}

const pools = new Map<number, ChunkPool>();

export function poolOf(chunkBytes: number): ChunkPool {
  let pool = pools.get(chunkBytes);
  if (!pool) pools.set(chunkBytes, (pool = new ChunkPool(chunkBytes)));
  return pool;
}

/** The environment variable that names the file to be read, and the name of the resource that is that file. */
export const fileVariable = "MILLRACE_BENCH_FILE";
export const fileResource = "file";

let file: Promise<FileHandle> | undefined;

export const benchFile = (): Promise<FileHandle> => (file ??= open(process.env[fileVariable] ?? ""));

/** With Node's own means: pieces of 256 KiB, of which the next is read when the last has been taken. */
export async function* fileChunks(bytes: number): AsyncGenerator<Buffer> {
  const handle = await benchFile();
  for (let position = 0; position < bytes;) {
    const chunk = Buffer.allocUnsafe(256 * 1024);
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

/** The name of a written resource is its SHA-256, and it is refused if that is wrong. */
export class Written {
  readonly #hash: Hash = createHash("sha256");
  #name = "";
  bytes = 0;

  add(resourceName: string, data: Uint8Array): void {
    if (this.#name === "") this.#name = resourceName;
    this.#hash.update(data);
    this.bytes += data.length;
  }

  check(): void {
    if (this.#hash.digest("hex") !== this.#name) throw new Error("what was written is not what was announced");
  }
}
