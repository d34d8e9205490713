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

const encoder = new TextEncoder();

/** A field that is undefined is left out, as Go's `omitempty` does. */
export function pack(value: Packable): Uint8Array {
  const parts: Uint8Array[] = [];
  write(value, parts);
  return joined(parts);
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

function write(value: Packable, parts: Uint8Array[]): void {
  if (value === null) parts.push(Uint8Array.of(0xc0));
  else if (typeof value === "boolean") parts.push(Uint8Array.of(value ? 0xc3 : 0xc2));
  else if (typeof value === "number") parts.push(integer(value));
  else if (typeof value === "string") writeRaw(encoder.encode(value), parts);
  else if (value instanceof Uint8Array) writeRaw(value, parts);
  else if (isList(value)) {
    parts.push(header(value.length, { small: 0x90, smallMax: 15, wide: 0xdc }));
    for (const item of value) write(item, parts);
  } else writeMap(value, parts);
}

const isList = (value: Packable): value is readonly Packable[] => Array.isArray(value);

function writeMap(value: { readonly [field: string]: Packable | undefined }, parts: Uint8Array[]): void {
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  parts.push(header(fields.length, { small: 0x80, smallMax: 15, wide: 0xde }));
  for (const [name, field] of fields) {
    writeRaw(encoder.encode(name), parts);
    write(field ?? null, parts);
  }
}

function writeRaw(bytes: Uint8Array, parts: Uint8Array[]): void {
  parts.push(header(bytes.length, { small: 0xa0, smallMax: 31, wide: 0xda }), bytes);
}

function header(length: number, { small, smallMax, wide }: { small: number; smallMax: number; wide: number }) {
  if (length <= smallMax) return Uint8Array.of(small | length);
  return length < 0x1_0000 ? unsigned(wide, length, 2) : unsigned(wide + 1, length, 4);
}

function integer(value: number): Uint8Array {
  assert(Number.isSafeInteger(value) && value >= 0, "only whole numbers from zero up are sent");
  if (value < 0x80) return Uint8Array.of(value);
  if (value < 0x100) return unsigned(0xcc, value, 1);
  if (value < 0x1_0000) return unsigned(0xcd, value, 2);
  return value < 0x1_0000_0000 ? unsigned(0xce, value, 4) : unsigned(0xcf, value, 8);
}

function unsigned(tag: number, value: number, size: 1 | 2 | 4 | 8): Uint8Array {
  const out = new Uint8Array(1 + size);
  out[0] = tag;
  let rest = value;
  for (let at = size; at > 0; at -= 1) {
    out[at] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  return out;
}
