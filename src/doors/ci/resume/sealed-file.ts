/**
 * Files that only the same job can read: what a job keeps for its next attempt may hold secrets (a token in a file, a
 * masked value), and the store it goes through is shared. Nonce, ciphertext of AES-256-GCM, tag.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { closeSync, constants, openSync, readFileSync, readSync, fstatSync, writeSync } from "node:fs";
import { Fault } from "#base/fault.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;
const pieceBytes = 1 << 20;

export class SealedWriter {
  readonly #file: number;
  readonly #cipher;

  /** The file must not exist yet. */
  constructor(path: string, key: Uint8Array) {
    const nonce = randomBytes(nonceBytes);
    this.#file = openSync(path, "wx", 0o600);
    this.#cipher = createCipheriv(algorithm, key, nonce);
    writeAll(this.#file, nonce);
  }

  write(bytes: Uint8Array): void {
    writeAll(this.#file, this.#cipher.update(bytes));
  }

  close(): void {
    try {
      writeAll(this.#file, this.#cipher.final());
      writeAll(this.#file, this.#cipher.getAuthTag());
    } finally {
      closeSync(this.#file);
    }
  }
}

export function sealText(path: string, text: string, key: Uint8Array): void {
  const writer = new SealedWriter(path, key);
  writer.write(Buffer.from(text));
  writer.close();
}

export function openText(path: string, key: Uint8Array): string {
  const bytes = readFileSync(path);
  if (bytes.length < nonceBytes + tagBytes) throw damaged();
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes));
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  const head = decipher.update(bytes.subarray(nonceBytes, -tagBytes));
  return Buffer.concat([head, finish(() => decipher.final())]).toString("utf8");
}

/** Into a plain file beside it, which must not exist yet; nothing may be read from that before this has returned. */
export function openSealed(path: string, to: string, key: Uint8Array): void {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const out = openSync(to, "wx", 0o600);
  try {
    const end = fstatSync(file).size - tagBytes;
    const nonce = Buffer.alloc(nonceBytes);
    const tag = Buffer.alloc(tagBytes);
    if (end < nonceBytes || readSync(file, nonce, 0, nonceBytes, 0) < nonceBytes) throw damaged();
    readSync(file, tag, 0, tagBytes, end);
    const decipher = createDecipheriv(algorithm, key, nonce);
    decipher.setAuthTag(tag);
    const piece = Buffer.allocUnsafe(pieceBytes);
    for (let at = nonceBytes; at < end;) {
      const read = readSync(file, piece, 0, Math.min(piece.length, end - at), at);
      if (read === 0) throw damaged();
      writeAll(out, decipher.update(piece.subarray(0, read)));
      at += read;
    }
    writeAll(
      out,
      finish(() => decipher.final()),
    );
  } finally {
    closeSync(out);
    closeSync(file);
  }
}

function finish(final: () => Buffer): Buffer {
  try {
    return final();
  } catch (cause) {
    throw damaged(cause);
  }
}

const damaged = (cause?: unknown): Fault =>
  new Fault("corrupt", "read what the job kept", { why: "it was changed, or is another job's" }, cause);

function writeAll(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
}
