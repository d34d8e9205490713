import { closeSync, openSync, readSync, writeSync } from "node:fs";

/** A file of the kernel's that is read and written often: opened once. One that cannot be had reads as nothing. */
export class ControlFile implements Disposable {
  #fd: number | undefined;

  constructor(path: string, flags: "r" | "r+") {
    try {
      this.#fd = openSync(path, flags);
    } catch {
      // A kernel without it.
    }
  }

  get isThere(): boolean {
    return this.#fd !== undefined;
  }

  read(): string {
    if (this.#fd === undefined) return "";
    try {
      return buffer.toString("latin1", 0, readSync(this.#fd, buffer, 0, buffer.length, 0));
    } catch {
      return "";
    }
  }

  write(text: string): void {
    try {
      if (this.#fd !== undefined) writeSync(this.#fd, text, 0);
    } catch {
      // The kernel knows best what it does not want.
    }
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** The number behind a name, in a text that has one of each on every line. */
export function numberOf(name: string, text: string): number {
  const at = `\n${text}`.indexOf(`\n${name}`);
  return at < 0 ? 0 : Number.parseInt(text.slice(at + name.length), 10) || 0;
}

const buffer = Buffer.allocUnsafe(64 * 1024);
