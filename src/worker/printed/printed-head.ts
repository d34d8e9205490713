/** What a process printed so far: it only grows, and what was read of it stays as it was. */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { headBytesOf } from "#worker/process/launcher/capped.ts";

export type PrintedHead = {
  sizeBytes(): number;
  /** At most `length` bytes; fewer where there are no more. */
  read(at: number, length: number): Uint8Array;
};

/** `over` is called when nothing more is printed: then it is all of it, and not only the beginning. */
export type PrintedFile = PrintedHead & { over(): void };

/** Of a file that is cut back to `bytesMax` when it has grown beyond that (process/launcher/capped.ts). */
export function cappedFileHead(path: string, bytesMax: number): PrintedFile {
  let sizeMax = headBytesOf(bytesMax);
  return {
    sizeBytes: () => Math.min(statSync(path).size, sizeMax),
    read: (at, length) => readPiece(path, at, length),
    over: () => (sizeMax = Infinity),
  };
}

function readPiece(path: string, at: number, length: number): Uint8Array {
  const fd = openSync(path, "r");
  try {
    const piece = Buffer.allocUnsafe(length);
    return piece.subarray(0, readSync(fd, piece, 0, length, at));
  } finally {
    closeSync(fd);
  }
}
