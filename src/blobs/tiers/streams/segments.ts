/**
 * How a stream lies in a tier that all nodes reach (ADR 0085): as segments, small objects that are written once and
 * numbered from 0. Each says at which offset it begins, so that a reader finds any place with a few lookups and needs
 * no listing.
 */
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { Fault } from "#base/fault.ts";
import type { StreamKey } from "#blobs/streams.ts";

/** Small objects by name. Names have letters, digits, dashes and slashes. */
export type Segments = {
  /** How often a writer of one stream should write. */
  readonly everyMs: number;
  /**
   * Durable when it resolves. "present": there is one of this name, which stays. A tier that cannot tell replaces it.
   */
  put(name: string, bytes: Uint8Array): Promise<"written" | "present">;
  /** Durable when it resolves; an object of this name is replaced. */
  replace(name: string, bytes: Uint8Array): Promise<void>;
  get(name: string): Promise<Uint8Array | undefined>;
  remove(name: string): Promise<void>;
};

export type Segment = { readonly from: number; readonly bytes: Uint8Array };

const magic = 0x4d525331;
const headBytes = 16;
export const segmentBytesMax = 1024 * 1024;

export function encodeSegment({ from, bytes }: Segment): Uint8Array {
  const encoded = Buffer.allocUnsafe(headBytes + bytes.length);
  encoded.writeUInt32BE(magic, 0);
  encoded.writeUIntBE(from, 4, 6);
  encoded.writeUInt16BE(0, 10);
  encoded.set(bytes, headBytes);
  encoded.writeUInt32BE(checksum(encoded), 12);
  return encoded;
}

/** Throws "corrupt" for bytes that are not as they were written. */
export function decodeSegment(encoded: Uint8Array): Segment {
  const view = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.length);
  if (view.length < headBytes || view.readUInt32BE(0) !== magic || view.readUInt32BE(12) !== checksum(view))
    throw new Fault("corrupt", "read stream", { why: "a segment is not as it was written" });
  return { from: view.readUIntBE(4, 6), bytes: view.subarray(headBytes) };
}

/** Of all but itself. */
const checksum = (encoded: Buffer): number => crc32(encoded.subarray(headBytes), crc32(encoded.subarray(0, 12)));

const hashOf = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex");

/** The objects of one task. */
export function taskFolder({ tenant, task }: Pick<StreamKey, "tenant" | "task">): string {
  const hash = hashOf([tenant, task]);
  return `${hash.slice(0, 2)}/${hash}`;
}

export const streamFolder = (key: StreamKey): string =>
  `${taskFolder(key)}/${key.token}-${hashOf(key.name).slice(0, 32)}`;
