/** Copies the live records of a segment to the end of the log, and removes the segment. */
import { must } from "#base/assert.ts";
import { isFault } from "#base/fault.ts";
import { readCalmly } from "#blobs/disk/read-file.ts";
import { CopyBlock, type SourceRecord } from "./copy-block.ts";
import type { Core } from "#blobs/disk/core.ts";
import { keyBytes } from "#blobs/disk/holdings.ts";
import { recordFileAgain } from "./file-record.ts";
import { hashLength, keyFromBytes, keyWords, namedFunction, wordsOfBytes, type Key } from "#blobs/disk/table/key.ts";
import {
  functionAt,
  paddedHashBytes,
  headerBytes,
  isRight,
  kindAt,
  kinds,
  peekHeader,
  recordBytes,
  recordLength,
  type Header,
} from "./record.ts";
import { segmentHeaderBytes } from "./segments.ts";
import { flags, noEntry } from "#blobs/disk/table/table.ts";

/** Bytes to scan and copy before yielding to other work: well under a millisecond. */
const stepBytes = 128 * 1024;
const stepRecords = 200;
const windowBytes = 256 * 1024;
/** Table entries to scan before yielding to other work. */
const stepEntries = 10_000;

/** Throws, and keeps the segment, if a record could not be copied. */
export async function compactSegment(core: Core, number: number): Promise<number> {
  const { segments, log, budget } = core;
  const segment = segments.get(number);
  if (!segment || number === log.current) return 0;
  const firstTarget = log.current;
  const fd = acquired(core, number);
  try {
    if (fd !== undefined) await copyLive(core, { fd, number, sizeBytes: segment.sizeBytes });
  } finally {
    if (fd !== undefined) segments.release(number, fd);
  }
  await log.settled();
  if (segment.liveBytes > 0) await moveRest(core, number);
  // The originals may have been durable, so the copies must be before the segment is removed.
  for (const target of segments.numbers.filter((one) => one >= firstTarget)) await log.sync(target);
  await segments.remove(number);
  budget.give(segment.sizeBytes);
  return segment.sizeBytes;
}

/** Undefined if the file was removed and is not open: then only the table knows what was in it. */
function acquired({ segments }: Core, number: number): number | undefined {
  try {
    return segments.acquire(number);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Records behind a damaged one cannot be reached by scanning, so they are found through the table. */
async function moveRest(core: Core, number: number): Promise<void> {
  const { table } = core.holdings;
  for (let entry = 0; entry < table.end; entry += 1) {
    if (entry % stepEntries === 0) await core.pace.giveWay();
    if (!table.isTaken(entry) || table.segment(entry) !== number) continue;
    const place = { segment: number, offset: table.offset(entry) };
    const isFile = table.has(entry, flags.file);
    const lengthBytes = isFile
      ? recordBytes(paddedHashBytes(hashLength(table.fn(entry))) + 16)
      : table.recordBytes(entry);
    try {
      const { bytes } = await core.reader.read({ ...place, lengthBytes });
      const block = new CopyBlock(core, lengthBytes);
      const copied = copyRecord({ core, block, isOldest: true }, { bytes: Buffer.from(bytes), at: 0, ...place });
      await Promise.all([copied, ...block.append()]);
    } catch (error) {
      if (!isFault(error, "corrupt")) throw error;
      if (!table.isTaken(entry) || table.segment(entry) !== number) continue;
      if (isFile && (await recordFileAgain(core, entry))) continue;
      core.options.report("a damaged record was found and dropped", place);
      await core.drop([entry]);
    }
  }
}

type Source = { readonly fd: number; readonly number: number; readonly sizeBytes: number };

async function copyLive(core: Core, { fd, number, sizeBytes }: Source): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(Math.max(windowBytes, 2 * core.options.packedBytesMax));
  const isOldest = core.segments.numbers[0] === number;
  const copying = { core, block: new CopyBlock(core, buffer.length), isOldest };
  for (let at = segmentHeaderBytes; at < sizeBytes;) {
    const got = await readCalmly(fd, buffer.subarray(0, Math.min(buffer.length, sizeBytes - at)), at);
    const bytes = buffer.subarray(0, got);
    let used = 0;
    for (let length = -1; length !== 0; used += length)
      length = await copyStep(copying, { bytes, at: used, segment: number, offset: at + used });
    if (used === 0) break; // damaged from here on: record boundaries are unknown
    at += used;
  }
}

/** Returns the bytes processed: complete records only, 0 if there is none. */
async function copyStep(copying: Copying, { bytes, at: from, segment, offset }: SourceRecord): Promise<number> {
  const { core, block } = copying;
  const end = from + Math.min(stepBytes, core.options.segmentBytes / 4);
  const copied: Promise<unknown>[] = [];
  let at = from;
  for (let records = 0; records < stepRecords && at < end; records += 1) {
    const length = recordLength(bytes, at, bytes.length);
    if (length === 0) break;
    const writing = copyRecord(copying, { bytes, at, segment, offset: offset + at - from });
    if (writing) copied.push(writing);
    at += length;
  }
  copied.push(...block.append());
  // Copies read from the window, so it must not change until they are done.
  await Promise.all(copied);
  block.clear();
  await core.pace.giveWay();
  return at - from;
}

type Copying = {
  readonly core: Core;
  readonly block: CopyBlock;
  /** Whether no older segment exists. */
  readonly isOldest: boolean;
};

const key: Key = new Uint32Array(keyWords);

/** Most records are blobs and go into the block; others are appended one by one. */
function copyRecord({ core, block, isOldest }: Copying, record: SourceRecord): Promise<unknown> | undefined {
  const { bytes, at, segment } = record;
  const kind = kindAt(bytes, at);
  if (kind === kinds.blob || kind === kinds.file) {
    keyFromBytes(key, functionAt(bytes, at), bytes, at + headerBytes);
    const entry = entryOf(core, record, functionAt(bytes, at));
    if (entry === noEntry) return undefined;
    if (!isRight(bytes, at)) return dropDamaged(core, record, entry);
    block.add(entry, record);
    return undefined;
  }
  const header = must(peekHeader(bytes, at), "a record");
  switch (kind) {
    case kinds.named:
      return moveNamed(core, record, header);
    case kinds.tenant:
      return appendAgain(core, record, header);
    case kinds.unnamed:
      // Without this record, an older one of the same name would count again when the log is replayed.
      return isOldest ? undefined : appendAgain(core, record, header);
    case kinds.grants:
    case kinds.pins:
      return appendForOthers(core, record, header);
    case kinds.gone:
      // The last checkpoint still has these blobs: without this record they would be back after a restart, without
      // their files.
      return segment < core.checkpointSegment ? undefined : core.appendGone(core.absentKeys(bodyOf(record, header)));
    default:
      return undefined;
  }
}

const bodyOf = ({ bytes, at }: SourceRecord, { bodyBytes }: Header): Buffer =>
  bytes.subarray(at + headerBytes, at + headerBytes + bodyBytes);

/** The entry under the current key, if this record is its current one. */
function entryOf(core: Core, { segment, offset }: SourceRecord, fn: number): number {
  const { table } = core.holdings;
  const entry = table.find(key, fn);
  const isThat = entry !== noEntry && table.segment(entry) === segment && table.offset(entry) === offset;
  return isThat ? entry : noEntry;
}

async function dropDamaged(core: Core, { segment, offset }: SourceRecord, entry: number): Promise<void> {
  core.options.report("a damaged record was found and dropped", { segment, offset });
  await core.drop([entry]);
}

/** In turn with writers of the same name, so that a newer record is not overtaken. */
function moveNamed(core: Core, record: SourceRecord, header: Header): Promise<unknown> {
  const { table } = core.holdings;
  const { bytes, at } = record;
  const hash = bytes.subarray(at + headerBytes, at + headerBytes + 4 * keyWords);
  return core.nameTurns.take(hash.toString("latin1"), async () => {
    wordsOfBytes(key, hash, 0, keyWords);
    const entry = entryOf(core, record, namedFunction);
    if (entry === noEntry) return;
    if (!isRight(bytes, at)) return await dropDamaged(core, record, entry);
    const { segment, offset } = record;
    const state = { accessSec: table.accessSec(entry), keepSec: table.keepSec(entry), visible: table.visible(entry) };
    await appendAgain(core, record, { ...header, ...state, movedFrom: { segment, offset } });
  });
}

const appendAgain = (core: Core, { bytes, at }: SourceRecord, header: Header): Promise<unknown> =>
  core.log.append({
    header,
    bodyBytes: header.bodyBytes,
    fill: (target, to) => bytes.copy(target, to, at + headerBytes, at + headerBytes + header.bodyBytes),
    isOwn: true,
  });

/** Copies grants and pins for blobs in other segments. Blobs of this segment carry theirs along. */
function appendForOthers(core: Core, record: SourceRecord, header: Header): Promise<unknown> | undefined {
  const { bytes, at, segment } = record;
  const { table } = core.holdings;
  const entries: number[] = [];
  const body = at + headerBytes;
  for (let from = body; from < body + header.bodyBytes; from += keyBytes) {
    wordsOfBytes(key, bytes, from + 4, keyWords);
    const entry = table.find(key, bytes[from] ?? 0);
    if (entry === noEntry || table.segment(entry) === segment) continue;
    const isPin = header.kind === kinds.pins;
    if (isPin && (header.keepSec <= core.nowSec() || table.keepSec(entry) > header.keepSec)) continue;
    entries.push(entry);
  }
  return entries.length === 0 ? undefined : core.appendKeys(header, entries);
}
