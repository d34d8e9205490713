/**
 * Makes a release's alternatives when it is sealed: one for each older release that machines are likely to have, and
 * one for machines that have none of them. What the time does not suffice for travels as it is.
 */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { hashUnits, rowOf, type Row } from "#doors/deploy/manifest/layout.ts";
import { segmentBytes, type Alternative, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import { DiffThreads, type Encoded, type Region } from "./diff-threads.ts";
import { blockBytes, packContent, type Block, type Pack } from "./pack.ts";
import { blocksOf, Windows } from "./windows.ts";

type Content = Pick<Manifest, "files">;
export type Base = { readonly digest: Digest; readonly manifest: Content };

export type MakePorts = {
  readonly blobs: BlobStore;
  readonly pin: (digests: readonly Digest[]) => Promise<void>;
  /** The work is given up. */
  readonly signal: AbortSignal;
  /** The time is over: what is not encoded by then is taken as it is. */
  readonly hurry: AbortSignal;
  readonly missed: (base: Digest | null, error: unknown) => void;
};

export type Made = { readonly alternatives: readonly Alternative[]; readonly digests: readonly Digest[] };

/** An alternative must spare this part of the bytes at least. */
const spareMin = 0.05;

export async function makeAlternatives(fresh: Content, bases: readonly Base[], ports: MakePorts): Promise<Made> {
  await using threads = new DiffThreads();
  const alternatives: Alternative[] = [];
  const digests: Digest[] = [];
  // What most machines have comes first, for the case that the time does not suffice for all.
  for (const base of [...bases, undefined]) {
    if (ports.hurry.aborted) break;
    try {
      const made = await makeOne(fresh, base, threads, ports);
      if (!made) continue;
      alternatives.push({ base: base?.digest ?? null, pack: made.digest, sizeBytes: made.sizeBytes });
      digests.push(made.digest, ...made.pack.segments);
    } catch (error) {
      // Machines fetch the release itself then.
      ports.signal.throwIfAborted();
      ports.missed(base?.digest ?? null, error);
    }
  }
  return { alternatives, digests };
}

async function makeOne(
  fresh: Content,
  base: Base | undefined,
  threads: DiffThreads,
  ports: MakePorts,
): Promise<{ readonly digest: Digest; readonly pack: Pack; readonly sizeBytes: number } | undefined> {
  const planned = blocksOf(fresh, base?.manifest);
  if (planned.length === 0) return undefined; // a machine that has the base has all of it
  const rows = { fresh: rowOf(fresh), base: base && rowOf(base.manifest) };
  const windows = base && new Windows(fresh, base.manifest);
  const writer = new PackWriter(ports.blobs);
  const blocks: Block[] = [];
  // Encoded side by side, written in order.
  const encoding: Promise<Encoded>[] = [];
  const encode = async (segments: readonly Digest[]): Promise<Encoded> => {
    const bytes = await read(ports.blobs, rows.fresh, regionsOf(rows.fresh, segments));
    const regions = windows?.of(segments) ?? [];
    if (ports.hurry.aborted) return { how: "raw", bytes };
    const old = rows.base && regions.length > 0 ? await read(ports.blobs, rows.base, regions) : undefined;
    const signal = AbortSignal.any([ports.signal, ports.hurry]);
    return await threads.encode({ fresh: bytes, old, regions }, signal).catch(async (error: unknown) => {
      if (!ports.hurry.aborted || ports.signal.aborted) throw error;
      return { how: "raw", bytes: await read(ports.blobs, rows.fresh, regionsOf(rows.fresh, segments)) } as const;
    });
  };
  try {
    for (const [index, segments] of planned.entries()) {
      for (const next of planned.slice(index + encoding.length, index + threads.size)) encoding.push(encode(next));
      const { how, bytes } = (await encoding.shift()) ?? (await encode(segments));
      blocks.push({ segments: [...segments], how, bytes: bytes.length });
      await writer.write(bytes);
    }
  } finally {
    await Promise.allSettled(encoding);
  }
  const segments = [...(await writer.end())];
  const wholeBytes = blocks.reduce((sum, block) => sum + blockBytes(block), 0);
  const sizeBytes = blocks.reduce((sum, block) => sum + block.bytes, 0);
  if (sizeBytes > (1 - spareMin) * wholeBytes) return undefined;
  const units = await hashUnits(packContent({ segments }), ports.blobs);
  const pack: Pack = { format: 1, base: base?.digest ?? null, blocks, segments, units };
  const text = Buffer.from(JSON.stringify(pack));
  const digest = sha256Digest(text);
  await ports.blobs.write(digest, text);
  await ports.pin([digest, ...segments]);
  return { digest, pack, sizeBytes };
}

/** Bytes of any length become blobs of a segment's length. */
class PackWriter {
  readonly #blobs: BlobStore;
  readonly #segments: Digest[] = [];
  #parts: Uint8Array[] = [];
  #length = 0;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#parts.push(bytes);
    this.#length += bytes.length;
    while (this.#length >= segmentBytes) await this.#flush();
  }

  async end(): Promise<readonly Digest[]> {
    if (this.#length > 0) await this.#flush();
    return this.#segments;
  }

  async #flush(): Promise<void> {
    const all = Buffer.concat(this.#parts);
    const segment = all.subarray(0, segmentBytes);
    this.#parts = [all.subarray(segment.length)];
    this.#length = all.length - segment.length;
    const digest = sha256Digest(segment);
    await this.#blobs.write(digest, segment);
    this.#segments.push(digest);
  }
}

const regionsOf = (row: Row, segments: readonly Digest[]): readonly Region[] =>
  segments.map((digest) => ({ row: row.startOf(digest) ?? 0, length: digestSizeBytes(digest) }));

/** Regions of a row, one after the other, in memory of their own. */
async function read(
  blobs: Pick<BlobStore, "read">,
  row: Row,
  regions: readonly Region[],
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(regions.reduce((sum, { length }) => sum + length, 0));
  let start = 0;
  for (const region of regions) {
    for (const { at, length, segment, offset } of row.piecesIn(region.row, region.row + region.length)) {
      let written = 0;
      for await (const part of blobs.read(segment, { offset, length })) {
        bytes.set(part.subarray(0, length - written), start + at + written);
        written += part.length;
      }
      if (written < length) throw new Fault("corrupt", "read segment", { segment, why: "it is shorter than its name" });
    }
    start += region.length;
  }
  return bytes;
}
