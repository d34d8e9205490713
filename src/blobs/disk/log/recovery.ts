/** Restores the state at a start: the last checkpoint, then the log from there to its end. */
import { existsSync, readFileSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { fileName, filePath } from "#blobs/disk/blob-files.ts";
import { readCheckpoint, type Position } from "./checkpoint.ts";
import { asDiskFault } from "#blobs/disk/disk-fault.ts";
import type { Holdings } from "#blobs/disk/holdings.ts";
import { openRecord, recordBytes } from "./record.ts";
import { segmentHeaderBytes, type Segments } from "./segments.ts";
import { flags } from "#blobs/disk/table/table.ts";

export type Recovered = {
  readonly sequence: number;
  /** Bytes of the log that were read. */
  readonly scannedBytes: number;
  /** Bytes of an incomplete last record, which was never acknowledged. */
  readonly cutBytes: number;
  /** Blobs and names whose bytes are missing. */
  readonly lost: number;
  readonly fromCheckpoint: boolean;
  /** The checkpoint may not contain records of this and later segments. */
  readonly checkpointSegment: number;
};

export function recover(root: string, holdings: Holdings, segments: Segments): Recovered {
  holdings.hasSegment = (number) => segments.get(number) !== undefined;
  const checkpoint = readCheckpoint(root, holdings);
  const from: Position = checkpoint ?? { segment: 0, offset: 0, sequence: 0 };
  let { sequence } = from;
  let scannedBytes = 0;
  let cutBytes = 0;
  for (const number of segments.numbers.filter((one) => one >= from.segment)) {
    const start = number === from.segment ? Math.max(from.offset, segmentHeaderBytes) : segmentHeaderBytes;
    const scanned = scan(holdings, segments, { number, start, sequence });
    sequence = scanned.sequence;
    scannedBytes += scanned.bytes;
    cutBytes += scanned.cutBytes;
  }
  const lost = dropLost(holdings, segments) + (checkpoint ? 0 : dropWithoutFile(root, holdings));
  const known = { fromCheckpoint: checkpoint !== undefined, checkpointSegment: from.segment };
  return { sequence, scannedBytes, cutBytes, lost, ...known };
}

type Scan = { readonly number: number; readonly start: number; readonly sequence: number };
type Scanned = { readonly sequence: number; readonly bytes: number; readonly cutBytes: number };

function scan(holdings: Holdings, segments: Segments, { number, start, sequence }: Scan): Scanned {
  const segment = segments.get(number);
  if (!segment || segment.sizeBytes <= start) return { sequence, bytes: 0, cutBytes: 0 };
  const bytes = readSegment(segments.path(number));
  let last = sequence;
  let at = start;
  for (;;) {
    const header = openRecord(bytes, at);
    // Leftover of a failed write, older than the acknowledged records before it.
    if (!header || header.sequence <= last) break;
    holdings.apply(bytes, at, header, { segment: number, offset: at });
    last = header.sequence;
    at += recordBytes(header.bodyBytes);
  }
  const cutBytes = bytes.length - at;
  if (cutBytes > 0) truncateSync(segments.path(number), at);
  segment.sizeBytes = at;
  return { sequence: last, bytes: at - start, cutBytes };
}

function readSegment(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw asDiskFault(error, "read log");
  }
}

/** Better to report a blob missing than to fail to read it (B3). */
function dropLost(holdings: Holdings, segments: Segments): number {
  const { table } = holdings;
  let lost = 0;
  for (let entry = 0; entry < table.end; entry += 1) {
    if (!table.isTaken(entry)) continue;
    const segment = segments.get(table.segment(entry));
    if (segment && table.offset(entry) < segment.sizeBytes) continue;
    holdings.remove(entry);
    lost += 1;
  }
  return lost;
}

/**
 * Without a checkpoint, the log may name files that were removed long ago. Slow, so only done if the checkpoint was
 * lost.
 */
function dropWithoutFile(root: string, holdings: Holdings): number {
  const { table } = holdings;
  let lost = 0;
  for (let entry = 0; entry < table.end; entry += 1) {
    if (!table.isTaken(entry) || !table.has(entry, flags.file)) continue;
    if (existsSync(filePath(join(root, "files"), fileName(table.fn(entry), table.key(entry))))) continue;
    holdings.remove(entry);
    lost += 1;
  }
  return lost;
}
