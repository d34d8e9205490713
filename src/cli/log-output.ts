/**
 * Where a node writes its log. Node.js keeps what the reader of a pipe has not taken in memory, without a limit: with a
 * stopped pager behind it a busy node would run out of memory.
 *
 * LO1 Nothing waits in memory but the end of one line. While the reader takes nothing, lines are dropped, and counted
 *     when it reads again.
 *
 * On Linux the stream is opened a second time, without waiting; other writers of it are not affected. Where that is
 * not possible (sockets, other systems), lines are written in the usual way.
 */
import { constants, fstatSync, openSync, writeSync } from "node:fs";

export type LineWriter = (line: string) => void;

/** `fd` is 1 or 2; `usual` writes where the stream cannot be opened again. */
export function logOutput(fd: number, usual: LineWriter): LineWriter {
  const again = openAgain(fd);
  return again === undefined ? usual : new UnwaitingOutput((bytes) => writeSync(again, bytes)).line;
}

function openAgain(fd: number): number | undefined {
  try {
    const kind = fstatSync(fd); // a file never waits, and two positions in one would overwrite each other
    if (!kind.isFIFO() && !kind.isCharacterDevice()) return undefined;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}

export class UnwaitingOutput {
  readonly #write: (bytes: Buffer) => number;
  /** The end of a line that was written in part. */
  #rest: Buffer = Buffer.alloc(0);
  #dropped = 0;

  /** `write` returns how many bytes it took, and throws EAGAIN when the reader takes none. */
  constructor(write: (bytes: Buffer) => number) {
    this.#write = write;
  }

  readonly line: LineWriter = (line) => {
    if (!this.#finishLast()) {
      this.#dropped += 1;
      return;
    }
    const count = this.#dropped;
    const before = count === 0 ? "" : `(${count} lines were dropped: the log was not being read)\n`;
    this.#dropped = this.#take(Buffer.from(`${before}${line}\n`)) ? 0 : count + 1;
  };

  #finishLast(): boolean {
    const rest = this.#rest;
    if (rest.length === 0) return true;
    this.#rest = Buffer.alloc(0);
    if (!this.#take(rest)) this.#rest = rest;
    return this.#rest.length === 0;
  }

  /** False if nothing was taken. What is left of a text that was taken in part is written before the next line. */
  #take(bytes: Buffer): boolean {
    try {
      const taken = this.#write(bytes);
      if (taken < bytes.length) this.#rest = bytes.subarray(taken);
      return true;
    } catch (error) {
      // EPIPE and the like: there is no reader any more, and no one to tell
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") return false;
      return true;
    }
  }
}
