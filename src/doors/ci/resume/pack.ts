/**
 * Writes what changed into parts of bounded size, and a manifest that says where in them each file is. The job's own
 * program does this, with the job's own rights: a node never walks through folders that a job can change meanwhile.
 */
import { closeSync, constants, fstatSync, mkdirSync, openSync, readSync, renameSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import { sealText, SealedWriter } from "./sealed-file.ts";
import { type Delta, type Entry, onDisk } from "./walk.ts";

/** One line of a manifest. `at` counts bytes over all parts of the delta. */
export type ManifestLine =
  | Exclude<Entry, { kind: "file" }>
  | (Extract<Entry, { kind: "file" }> & { readonly at: number })
  | { readonly kind: "removed"; readonly path: string };

export type PackLimits = { readonly partBytes: number; readonly bytesMax: number };

export const packLimits: PackLimits = { partBytes: 64 << 20, bytesMax: 16 * 2 ** 30 };

export type Packed = { readonly parts: number; readonly bytes: number; readonly entries: number };

const pieceBytes = 1 << 20;
export const manifestName = "manifest";
export const partName = (part: number): string => `part-${part}`;

export type PackInto = {
  readonly folder: string;
  readonly key: Uint8Array;
  readonly limits?: PackLimits;
  /** A text that belongs to it, sealed in a file of this name. */
  readonly more?: { readonly name: string; readonly text: string };
};

/** Into a folder that must not exist yet; it gets its name when all of it is there. */
export function packDelta(root: string, delta: Delta, { folder, key, limits = packLimits, more }: PackInto): Packed {
  const unfinished = `${folder}.new`;
  mkdirSync(unfinished, { recursive: true, mode: 0o700 });
  using writer = new PartWriter(unfinished, key, limits);
  const lines: string[] = [];
  const piece = Buffer.allocUnsafe(pieceBytes); // one for all: most files are small
  for (const path of delta.removed) lines.push(line({ kind: "removed", path }));
  for (const entry of delta.changed) {
    if (entry.kind !== "file") lines.push(line(entry));
    else {
      const at = writer.bytes;
      const size = copyFile(onDisk(root, entry.path), writer, piece);
      if (size === undefined) continue; // gone, or no file any more, since it was seen: the next look says so
      lines.push(line({ ...entry, size, at }));
    }
  }
  sealText(join(unfinished, manifestName), lines.join(""), key);
  if (more) sealText(join(unfinished, more.name), more.text, key);
  const packed = { parts: writer.close(), bytes: writer.bytes, entries: lines.length };
  renameSync(unfinished, folder);
  return packed;
}

const line = (value: ManifestLine): string => `${JSON.stringify(value)}\n`;

/** How many bytes it had; undefined if it cannot be read. */
function copyFile(path: Buffer, writer: PartWriter, piece: Buffer): number | undefined {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
  try {
    if (!fstatSync(file).isFile()) return undefined;
    let size = 0;
    for (let read = readSync(file, piece); read > 0; read = readSync(file, piece)) {
      writer.write(piece.subarray(0, read));
      size += read;
    }
    return size;
  } finally {
    closeSync(file);
  }
}

class PartWriter implements Disposable {
  readonly #folder: string;
  readonly #key: Uint8Array;
  readonly #limits: PackLimits;
  #part: SealedWriter | undefined;
  #parts = 0;
  bytes = 0;

  constructor(folder: string, key: Uint8Array, limits: PackLimits) {
    this.#folder = folder;
    this.#key = key;
    this.#limits = limits;
  }

  write(piece: Uint8Array): void {
    const { partBytes, bytesMax } = this.#limits;
    if (this.bytes + piece.length > bytesMax) throw new Fault("exhausted", "keep the job's files", { bytesMax });
    for (let at = 0; at < piece.length;) {
      const bytes = Math.min(partBytes - (this.bytes % partBytes), piece.length - at);
      this.#open().write(piece.subarray(at, at + bytes));
      at += bytes;
      this.bytes += bytes;
      if (this.bytes % partBytes === 0) this.#close();
    }
  }

  /** How many parts there are. */
  close(): number {
    this.#close();
    return this.#parts;
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  #open(): SealedWriter {
    this.#part ??= new SealedWriter(join(this.#folder, partName(this.#parts++)), this.#key);
    return this.#part;
  }

  #close(): void {
    this.#part?.close();
    this.#part = undefined;
  }
}
