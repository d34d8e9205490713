/**
 * Follows a file that another process appends to: each piece once, in order, until it is told to end. The file is
 * opened before that process starts, so that it cannot put another in its place.
 */
import { constants, watch, type FSWatcher } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";

const lookMs = 200;
const pieceBytes = 256 * 1024;

export class FileTail {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #take: (piece: Uint8Array, at: number) => Promise<void>;
  readonly #buffer = Buffer.allocUnsafe(pieceBytes);
  readonly #done: Promise<void>;
  #offset = 0;
  #isOver = false;
  #wake = Promise.withResolvers<void>();

  private constructor(path: string, file: FileHandle, take: (piece: Uint8Array, at: number) => Promise<void>) {
    this.#path = path;
    this.#file = file;
    this.#take = take;
    this.#done = this.#follow();
    this.#done.catch(() => {}); // `end` says it
  }

  static async open(path: string, take: (piece: Uint8Array, at: number) => Promise<void>): Promise<FileTail> {
    return new FileTail(path, await open(path, constants.O_RDONLY | constants.O_NOFOLLOW), take);
  }

  /** Resolves when all that is in the file was taken; the file must not grow any more. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.#wake.resolve();
    await this.#done;
  }

  async #follow(): Promise<void> {
    const watcher = this.#watch();
    try {
      for (;;) {
        const isLast = this.#isOver;
        this.#wake = Promise.withResolvers<void>();
        while (await this.#read());
        if (isLast) return;
        if (this.#isOver) continue;
        const timer = setTimeout(() => this.#wake.resolve(), lookMs);
        await this.#wake.promise;
        clearTimeout(timer);
      }
    } finally {
      watcher?.close();
      await this.#file.close();
    }
  }

  #watch(): FSWatcher | undefined {
    try {
      const watcher = watch(this.#path, () => this.#wake.resolve());
      watcher.on("error", () => {}); // then the timer alone looks
      return watcher;
    } catch {
      return undefined;
    }
  }

  /** Whether there may be more: a short piece ends where the file ends now, and what comes later wakes us. */
  async #read(): Promise<boolean> {
    const { bytesRead } = await this.#file.read(this.#buffer, 0, pieceBytes, this.#offset);
    if (bytesRead === 0) return false;
    const at = this.#offset;
    this.#offset += bytesRead;
    await this.#take(Uint8Array.from(this.#buffer.subarray(0, bytesRead)), at);
    return bytesRead === pieceBytes;
  }
}
