/** Reads a large blob in pieces from its plain file. */
import { close, fstat, open, read, readSync, type Stats } from "node:fs";
import { Fault } from "#base/fault.ts";
import type { Core } from "./core.ts";

export const pieceBytes = 256 * 1024;

/** The caller closes it. */
export const openFile = (path: string): Promise<number> =>
  new Promise((resolve, reject) => open(path, "r", (error, fd) => (error ? reject(error) : resolve(fd))));

export const closeFile = (fd: number): Promise<void> => new Promise((resolve) => close(fd, () => resolve()));

export const fileFacts = (fd: number): Promise<Stats> =>
  new Promise((resolve, reject) => fstat(fd, (error, facts) => (error ? reject(error) : resolve(facts))));

/** Synchronous while that is fast. Returns the number of bytes read. */
export async function readAt(core: Core, fd: number, target: Buffer, position: number): Promise<number> {
  let got = 0;
  while (got < target.length) {
    const count = core.gate.isOpen()
      ? core.gate.run(() => readSync(fd, target, got, target.length - got, position + got))
      : await readSome(fd, target, got, position + got);
    if (count === 0) break;
    got += count;
  }
  return got;
}

/** Always in the thread pool: for background work. */
export async function readCalmly(fd: number, target: Buffer, position: number): Promise<number> {
  let got = 0;
  for (let count = -1; got < target.length && count !== 0; got += count)
    count = await readSome(fd, target, got, position + got);
  return got;
}

const readSome = (fd: number, target: Buffer, at: number, position: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const done = (error: Error | null, count: number): void => (error ? reject(error) : resolve(count));
    read(fd, target, at, target.length - at, position, done);
  });

/** "corrupt" if the file ends before `to`. Each piece has its own memory, because readers may send slowly. */
export async function* piecesOf(
  core: Core,
  fd: number,
  { from, to }: { readonly from: number; readonly to: number },
): AsyncGenerator<Buffer> {
  for (let at = from; at < to;) {
    const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, to - at));
    const got = await readAt(core, fd, piece, at);
    if (got === 0) throw new Fault("corrupt", "read file", { at, to, why: "the file ends before" });
    yield piece.subarray(0, got);
    at += got;
  }
}
