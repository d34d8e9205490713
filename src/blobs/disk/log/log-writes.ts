/** Writes of the packed log: regions written at their offsets, and synced. */
import { fstatSync, write, writeSync } from "node:fs";
import type { Syncs } from "#blobs/syncs.ts";
import { folderIsLost } from "#blobs/disk/disk-fault.ts";
import type { Segment, Segments } from "./segments.ts";
import type { Slab } from "./slabs.ts";

/** Bytes that are written to one place in one call. */
export type Region = {
  readonly slab: Slab;
  readonly from: number;
  to: number;
  readonly segment: Segment;
  readonly offset: number;
};

/** The write failed here: this region and all after it must be discarded. */
export type Failure = { readonly error: unknown; readonly region: Region };

export function writeInline(regions: readonly Region[], segments: Segments): Failure | undefined {
  for (const region of regions) {
    const { slab, segment, from, to, offset } = region;
    try {
      const fd = segments.acquire(segment.number);
      try {
        for (let at = from; at < to;) at += writeSync(fd, slab.buffer, at, to - at, offset + at - from);
        checkLinked(fd);
      } finally {
        segments.release(segment.number, fd);
      }
    } catch (error) {
      return { error, region };
    }
  }
  return undefined;
}

export async function writeElsewhere(regions: readonly Region[], segments: Segments): Promise<Failure | undefined> {
  for (const region of regions) {
    const { slab, segment, from, to, offset } = region;
    try {
      const fd = segments.acquire(segment.number);
      try {
        for (let at = from; at < to;) at += await writeSome(fd, slab.buffer, { at, to, position: offset + at - from });
        checkLinked(fd);
      } finally {
        segments.release(segment.number, fd);
      }
    } catch (error) {
      return { error, region };
    }
  }
  return undefined;
}

/** A deleted file still takes writes, and loses them when it is closed. */
function checkLinked(fd: number): void {
  if (fstatSync(fd).nlink === 0) throw folderIsLost();
}

type Piece = { readonly at: number; readonly to: number; readonly position: number };

const writeSome = (fd: number, buffer: Buffer, { at, to, position }: Piece): Promise<number> =>
  new Promise((resolve, reject) => {
    write(fd, buffer, at, to - at, position, (error, written) => (error ? reject(error) : resolve(written)));
  });

/** Makes what was just written durable; for a new segment, also its name. */
export async function syncRegions(
  regions: readonly Region[],
  segments: Segments,
  syncs: Syncs,
): Promise<Failure | undefined> {
  for (const region of regions) {
    const { segment, from, to, offset } = region;
    const fd = segments.acquire(segment.number);
    try {
      if (segment.cannotSync) throw new Error("an earlier sync of the segment failed");
      await syncs.file(fd, segments.path(segment.number));
      if (!segment.isNameSynced) await syncs.folder(segments.folder);
      segment.isNameSynced = true;
      segment.syncedBytes = offset + to - from;
    } catch (error) {
      segment.cannotSync = true;
      return { error, region };
    } finally {
      segments.release(segment.number, fd);
    }
  }
  return undefined;
}
