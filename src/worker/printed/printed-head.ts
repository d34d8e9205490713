/** The beginning of what a process printed so far: it only grows, and what was read of it stays as it was. */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { headBytesOf } from "#worker/process/launcher/capped.ts";

export type PrintedHead = {
  sizeBytes(): number;
  /** At most `length` bytes; fewer where there are no more. */
  read(at: number, length: number): Uint8Array;
};

/** Of a file that is cut back to `bytesMax` when it has grown beyond that (process/launcher/capped.ts). */
export const cappedFileHead = (path: string, bytesMax: number): PrintedHead => ({
  sizeBytes: () => Math.min(statSync(path).size, headBytesOf(bytesMax)),
  read(at, length) {
    const fd = openSync(path, "r");
    try {
      const piece = Buffer.allocUnsafe(length);
      return piece.subarray(0, readSync(fd, piece, 0, length, at));
    } finally {
      closeSync(fd);
    }
  },
});
