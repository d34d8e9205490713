/** Writes MessagePack in the old format that every version of HashiCorp's Go codec reads: no str8, no bin. */
import { assert } from "#base/assert.ts";

export type Packable =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly Packable[]
  | { readonly [field: string]: Packable | undefined };

/** An undefined field is left out, like Go's `omitempty`. */
export function pack(value: Packable): Uint8Array {
  const writer = new Writer();
  writer.value(value);
  return writer.bytes();
}

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1 && parts[0]) return parts[0];
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Large enough for most messages; reused for each, and never handed out. */
let scratch = Buffer.allocUnsafe(16 * 1024);

class Writer {
  #at = 0;

  bytes(): Uint8Array {
    return Uint8Array.from(scratch.subarray(0, this.#at));
  }

  value(value: Packable): void {
    if (value === null) this.#byte(0xc0);
    else if (typeof value === "boolean") this.#byte(value ? 0xc3 : 0xc2);
    else if (typeof value === "number") this.#integer(value);
    else if (typeof value === "string") this.#text(value);
    else if (value instanceof Uint8Array) this.#raw(value);
    else if (isList(value)) {
      this.#header(value.length, 0x90, 15, 0xdc);
      for (const item of value) this.value(item);
    } else this.#map(value);
  }

  #map(value: { readonly [field: string]: Packable | undefined }): void {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    this.#header(fields.length, 0x80, 15, 0xde);
    for (const [name, field] of fields) {
      this.#text(name);
      this.value(field ?? null);
    }
  }

  #text(text: string): void {
    const length = Buffer.byteLength(text);
    this.#header(length, 0xa0, 31, 0xda);
    this.#ensureSpace(length);
    this.#at += scratch.write(text, this.#at);
  }

  #raw(bytes: Uint8Array): void {
    this.#header(bytes.length, 0xa0, 31, 0xda);
    this.#ensureSpace(bytes.length);
    scratch.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** A length: in the tag itself if it is small, else in 2 or 4 bytes after a separate tag. */
  #header(length: number, small: number, smallMax: number, wide: number): void {
    if (length <= smallMax) this.#byte(small | length);
    else if (length < 0x1_0000) this.#unsigned(wide, length, 2);
    else this.#unsigned(wide + 1, length, 4);
  }

  #integer(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, "only non-negative integers can be sent");
    if (value < 0x80) this.#byte(value);
    else if (value < 0x100) this.#unsigned(0xcc, value, 1);
    else if (value < 0x1_0000) this.#unsigned(0xcd, value, 2);
    else if (value < 0x1_0000_0000) this.#unsigned(0xce, value, 4);
    else this.#unsigned(0xcf, value, 8);
  }

  #unsigned(tag: number, value: number, size: 1 | 2 | 4 | 8): void {
    this.#byte(tag);
    this.#ensureSpace(size);
    let rest = value;
    for (let i = size - 1; i >= 0; i -= 1) {
      scratch[this.#at + i] = rest % 256;
      rest = Math.floor(rest / 256);
    }
    this.#at += size;
  }

  #byte(byte: number): void {
    this.#ensureSpace(1);
    scratch[this.#at++] = byte;
  }

  #ensureSpace(bytes: number): void {
    if (this.#at + bytes <= scratch.length) return;
    const wider = Buffer.allocUnsafe(Math.max(scratch.length * 2, this.#at + bytes));
    wider.set(scratch.subarray(0, this.#at));
    scratch = wider;
  }
}

const isList = (value: Packable): value is readonly Packable[] => Array.isArray(value);
