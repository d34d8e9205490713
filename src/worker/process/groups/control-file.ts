import { closeSync, openSync, readSync, writeSync } from "node:fs";

/** A kernel file that is read and written often, so it stays open. If it cannot be opened, it reads as empty. */
export class ControlFile implements Disposable {
  #fd: number | undefined;

  constructor(path: string, flags: "r" | "r+") {
    try {
      this.#fd = openSync(path, flags);
    } catch {
      // This kernel does not have it.
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
      // The kernel refuses the value.
    }
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** The number after a name, in a text with one name and number per line. */
export function numberOf(name: string, text: string): number {
  const at = `\n${text}`.indexOf(`\n${name}`);
  return at < 0 ? 0 : Number.parseInt(text.slice(at + name.length), 10) || 0;
}

const buffer = Buffer.allocUnsafe(64 * 1024);
