/**
 * A chunk of ByteStream.Read without a copy: the bytes are read into a buffer with space before them, and the message's
 * header is written there. The generated code would have to copy them.
 */
import { varintSize } from "./writer.ts";

const dataTag = 0x52; // field 10, bytes

/** The most bytes before the data of a ReadResponse. */
export const readResponseHeadBytesMax = 6;

/** Makes a ReadResponse of the `dataBytes` that begin at `dataAt`; returns where it begins now. */
export function writeReadResponseHead(bytes: Uint8Array, dataAt: number, dataBytes: number): number {
  if (dataBytes === 0) return dataAt; // a default is left out
  const start = dataAt - varintSize(dataBytes) - 1;
  bytes[start] = dataTag;
  let at = start + 1;
  let left = dataBytes;
  while (left > 0x7f) {
    bytes[at] = (left & 0x7f) | 0x80;
    at += 1;
    left >>>= 7;
  }
  bytes[at] = left;
  return start;
}

/** For fileMessages and LentMessage of grpc/. */
export const readResponseHead = {
  bytesMax: readResponseHeadBytesMax,
  write: writeReadResponseHead,
  /** What precedes this many bytes of data. */
  of(dataBytes: number): Uint8Array {
    const bytes = new Uint8Array(readResponseHeadBytesMax);
    return bytes.subarray(writeReadResponseHead(bytes, bytes.length, dataBytes));
  },
} as const;
