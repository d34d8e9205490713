/**
 * The entries of a small zip archive that is in memory, such as an artifact with test reports. Archives come from jobs,
 * so from anyone: the archive, its entries and what comes out of them are bounded, whatever the archive says. Pure.
 */
import { promisify } from "node:util";
import { inflateRaw } from "node:zlib";
import { Fault } from "#base/fault.ts";

export type ZipEntry = {
  readonly path: string;
  /** At most so many bytes come out; undefined: there are more, or it is damaged. */
  readonly read: (bytesMax: number) => Promise<Uint8Array | undefined>;
};

const inflated = promisify<Uint8Array, { readonly maxOutputLength: number }, Uint8Array>(inflateRaw);

const endMark = 0x06_05_4b_50;
const entryMark = 0x02_01_4b_50;
const endBytes = 22;
const commentBytesMax = 65_535;
const stored = 0;
const deflated = 8;

export function zipEntries(archive: Buffer, entriesMax: number): readonly ZipEntry[] {
  const entries: ZipEntry[] = [];
  for (let at = directoryOf(archive); at + 46 <= archive.length && archive.readUInt32LE(at) === entryMark;) {
    if (entries.length >= entriesMax) throw wrong(`it has more than ${entriesMax} entries`);
    const [nameBytes, extraBytes] = [archive.readUInt16LE(at + 28), archive.readUInt16LE(at + 30)];
    const path = archive.toString("utf8", at + 46, at + 46 + nameBytes);
    const [method, packedBytes] = [archive.readUInt16LE(at + 10), archive.readUInt32LE(at + 20)];
    const offset = archive.readUInt32LE(at + 42);
    entries.push({
      path,
      read: async (bytesMax) => await contents(archive, { method, packedBytes, offset }, bytesMax),
    });
    at += 46 + nameBytes + extraBytes + archive.readUInt16LE(at + 32);
  }
  return entries;
}

function directoryOf(archive: Buffer): number {
  const from = Math.max(0, archive.length - endBytes - commentBytesMax);
  for (let at = archive.length - endBytes; at >= from; at -= 1)
    if (archive.readUInt32LE(at) === endMark) return archive.readUInt32LE(at + 16);
  throw wrong("it has no directory");
}

async function contents(
  archive: Buffer,
  { method, packedBytes, offset }: { readonly method: number; readonly packedBytes: number; readonly offset: number },
  bytesMax: number,
): Promise<Uint8Array | undefined> {
  if (offset + 30 > archive.length) return undefined;
  const start = offset + 30 + archive.readUInt16LE(offset + 26) + archive.readUInt16LE(offset + 28);
  if (start + packedBytes > archive.length) return undefined;
  const packed = archive.subarray(start, start + packedBytes);
  if (method === stored) return packed.length > bytesMax ? undefined : packed;
  if (method !== deflated) return undefined;
  return await inflated(packed, { maxOutputLength: bytesMax }).catch(() => undefined);
}

const wrong = (why: string): Fault => new Fault("invalid", "read a zip archive", { why });
