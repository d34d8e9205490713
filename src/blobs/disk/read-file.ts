/** A large blob, piece by piece, from its plain file. */
import { close, fstat, open, read, readSync } from "node:fs";
import type { Core } from "./core.ts";

export const pieceBytes = 256 * 1024;

/** Closed by whoever opened it. */
export const openFile = (path: string): Promise<number> =>
  new Promise((resolve, reject) => open(path, "r", (error, fd) => (error ? reject(error) : resolve(fd))));

export const closeFile = (fd: number): Promise<void> => new Promise((resolve) => close(fd, () => resolve()));

export const fileSize = (fd: number): Promise<number> =>
  new Promise((resolve, reject) => fstat(fd, (error, { size }) => (error ? reject(error) : resolve(size))));

/** On the loop while that is quick. Gives how much was there. */
export async function readAt(core: Core, fd: number, target: Buffer, position: number): Promise<number> {
  let got = 0;
  while (got < target.length) {
    const count = core.gate.isOpen()
      ? core.gate.run(() => readSync(fd, target, got, target.length - got, position + got))
      : await new Promise<number>((resolve, reject) => {
          const done = (error: Error | null, n: number): void => (error ? reject(error) : resolve(n));
          read(fd, target, got, target.length - got, position + got, done);
        });
    if (count === 0) break;
    got += count;
  }
  return got;
}

/**
 * From `from` to `to`; ends early when the file does. Memory of its own for each piece: readers may be slow to send.
 */
export async function* piecesOf(
  core: Core,
  fd: number,
  { from, to }: { readonly from: number; readonly to: number },
): AsyncGenerator<Buffer> {
  for (let at = from; at < to;) {
    const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, to - at));
    const got = await readAt(core, fd, piece, at);
    if (got === 0) return;
    yield piece.subarray(0, got);
    at += got;
  }
}
