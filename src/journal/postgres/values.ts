/**
 * Converts values to PostgreSQL's binary form, and back from text. Whole columns are sent as one array parameter each,
 * so that a batch of any size is one statement, and bytes are not sent as hex.
 */
const oids = { int4: 23, int8: 20, float8: 701, text: 25, bytea: 17 } as const;

const headerBytes = 20;

export const int4Array = (values: readonly number[]): Buffer =>
  fixed(oids.int4, 4, values, (buffer, value, at) => buffer.writeInt32BE(value, at));

export const int8Array = (values: readonly number[]): Buffer =>
  fixed(oids.int8, 8, values, (buffer, value, at) => {
    buffer.writeInt32BE(Math.floor(value / 0x100000000), at);
    buffer.writeUInt32BE(((value % 0x100000000) + 0x100000000) % 0x100000000, at + 4);
  });

export const float8Array = (values: readonly number[]): Buffer =>
  fixed(oids.float8, 8, values, (buffer, value, at) => buffer.writeDoubleBE(value, at));

/** PostgreSQL's text cannot contain NUL; it becomes U+FFFD. */
export function textArray(values: readonly string[]): Buffer {
  let charsMax = 0;
  for (const value of values) charsMax += value.length;
  const buffer = Buffer.allocUnsafe(headerBytes + values.length * 4 + charsMax * 3);
  writeHeader(buffer, oids.text, values.length);
  let at = headerBytes;
  for (const value of values) {
    const sizeBytes = buffer.write(value.includes("\u0000") ? value.replaceAll("\u0000", "\ufffd") : value, at + 4);
    buffer.writeInt32BE(sizeBytes, at);
    at += 4 + sizeBytes;
  }
  return buffer.subarray(0, at);
}

/** For strings that must be read back exactly, whatever they contain. */
export const utf8Array = (values: readonly string[]): Buffer => byteaArray(values.map((value) => Buffer.from(value)));

export function byteaArray(values: readonly Uint8Array[]): Buffer {
  let sizeBytes = headerBytes;
  for (const value of values) sizeBytes += 4 + value.length;
  const buffer = Buffer.allocUnsafe(sizeBytes);
  writeHeader(buffer, oids.bytea, values.length);
  let at = headerBytes;
  for (const value of values) {
    buffer.writeInt32BE(value.length, at);
    buffer.set(value, at + 4);
    at += 4 + value.length;
  }
  return buffer;
}

type Write = (buffer: Buffer, value: number, at: number) => void;

function fixed(oid: number, sizeBytes: number, values: readonly number[], write: Write): Buffer {
  const buffer = Buffer.allocUnsafe(headerBytes + values.length * (4 + sizeBytes));
  writeHeader(buffer, oid, values.length);
  let at = headerBytes;
  for (const value of values) {
    buffer.writeInt32BE(sizeBytes, at);
    write(buffer, value, at + 4);
    at += 4 + sizeBytes;
  }
  return buffer;
}

function writeHeader(buffer: Buffer, oid: number, length: number): void {
  buffer.writeInt32BE(1, 0); // dimensions
  buffer.writeInt32BE(0, 4); // no nulls
  buffer.writeInt32BE(oid, 8);
  buffer.writeInt32BE(length, 12);
  buffer.writeInt32BE(1, 16); // lower bound
}

type Parse = (value: string) => unknown;

const parsers: Readonly<Record<number, Parse>> = {
  16: (value) => value === "t",
  [oids.bytea]: (value) => new Uint8Array(Buffer.from(value.slice(2), "hex")),
  [oids.int8]: Number,
  [oids.int4]: Number,
  [oids.float8]: Number,
};

/** In the form that the driver expects. Results come as text: the driver cannot read binary ones. */
export const resultTypes = {
  getTypeParser: (oid: number): Parse => parsers[oid] ?? ((value) => value),
};
