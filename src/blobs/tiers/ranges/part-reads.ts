/**
 * Reads parts of large blobs of a tier, and no more than those parts. Block sums of such a blob are kept beside it:
 * made while its bytes pass and are verified, when it is written, and when it is read as a whole. Without them, or if a
 * block is not as they say, there is no part, and the whole blob has to be read, which says what is wrong.
 */
import type { Digest } from "#base/digest.ts";
import { isFault, type FaultCode } from "#base/fault.ts";
import { extend } from "#blobs/extend.ts";
import { partsOf } from "#blobs/hashing.ts";
import { canonical } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Segments } from "#blobs/tiers/streams/segments.ts";
import { unpacked } from "#blobs/zstd.ts";
import { BlockSummer, BlockSums } from "./block-sums.ts";

/** Unverified bytes of the tier's copy; fewer if it is shorter. */
export type RawPart = (digest: Digest, offset: number, length: number) => AsyncIterable<Uint8Array>;

/** Of smaller blobs the whole is read as fast. */
const sizeBytesMin = 8 * 1024 * 1024;
/** Of one call: it is held in memory. */
export const partBytesMax = 4 * 1024 * 1024;
const sumsInMemoryMax = 32;

export function withParts(blobs: BlobStore, raw: RawPart, objects: Segments): BlobStore {
  const known = new Map<string, Promise<BlockSums | undefined>>();
  const keep = (name: string, sums: Promise<BlockSums | undefined>): void => {
    known.delete(name);
    known.set(name, sums);
    for (const oldest of known.keys()) if (known.size > sumsInMemoryMax) known.delete(oldest);
  };
  const find = async (digest: Digest): Promise<BlockSums | undefined> => {
    const name = nameOf(digest);
    const before = known.get(name);
    const coming = before ?? objects.get(name).then((found) => found && BlockSums.decode(found, sizeOf(digest)));
    keep(name, coming);
    try {
      const sums = await coming;
      if (!sums) known.delete(name); // another node may write them
      return sums;
    } catch (error) {
      known.delete(name);
      if (!isFault(error)) throw error;
      return undefined;
    }
  };
  /** Best effort: without them the blob is read as a whole. */
  const write = async (digest: Digest, sums: BlockSums): Promise<void> => {
    keep(nameOf(digest), Promise.resolve(sums));
    await objects.replace(nameOf(digest), sums.encode()).catch((error: unknown) => {
      if (!isFault(error)) throw error;
    });
  };

  return extend(blobs, {
    async write(digest, source, form) {
      if (sizeOf(digest) < sizeBytesMin) return await blobs.write(digest, source, form);
      const summer = new BlockSummer(sizeOf(digest));
      await blobs.write(digest, summed(form === "zstd" ? unpacked(source, sizeOf(digest)) : source, summer));
      await write(digest, summer.sums());
    },
    async *read(digest, range, form) {
      const isWhole = form !== "zstd" && (range?.offset ?? 0) === 0 && range?.length === undefined;
      if (!isWhole || sizeOf(digest) < sizeBytesMin || (await find(digest)))
        return yield* blobs.read(digest, range, form);
      const summer = new BlockSummer(sizeOf(digest));
      yield* summed(blobs.read(digest), summer);
      await write(digest, summer.sums());
    },
    async part(digest, { offset, length }) {
      const sums = sizeOf(digest) < sizeBytesMin || length > partBytesMax ? undefined : await find(digest);
      if (!sums || length === 0) return undefined;
      const span = sums.around(offset, length);
      const bytes = await collected(raw(canonical(digest), span.from, span.to - span.from), span.to - span.from);
      if (!bytes || !sums.areRight(span, bytes)) return undefined;
      return bytes.subarray(offset - span.from, offset - span.from + length);
    },
  });
}

/** Also of a server that reads no ranges: its whole blobs can be read nevertheless. */
const noPart: ReadonlySet<FaultCode> = new Set(["not-found", "corrupt", "invalid", "internal"]);

async function collected(parts: AsyncIterable<Uint8Array>, sizeBytes: number): Promise<Buffer | undefined> {
  const all = Buffer.allocUnsafe(sizeBytes);
  let at = 0;
  try {
    for await (const part of parts) {
      if (at + part.length > sizeBytes) return undefined;
      all.set(part, at);
      at += part.length;
    }
  } catch (error) {
    if (isFault(error) && noPart.has(error.code)) return undefined;
    throw error;
  }
  return at === sizeBytes ? all : undefined;
}

async function* summed(
  source: AsyncIterable<Uint8Array> | Uint8Array,
  summer: BlockSummer,
): AsyncGenerator<Uint8Array> {
  for await (const part of source instanceof Uint8Array ? [source] : source) {
    summer.add(part);
    yield part;
  }
}

const sizeOf = (digest: Digest): number => partsOf(digest).sizeBytes;

const nameOf = (digest: Digest): string => {
  const { fn, hash, sizeBytes } = partsOf(digest);
  return `sums/${hash.slice(0, 2)}/${fn}-${hash}-${sizeBytes}`;
};
