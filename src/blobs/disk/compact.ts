/** Copies what is still of use in a segment to the end of the log, and removes the segment. */
import { isFault } from "#base/fault.ts";
import { closeFile, openFile, readAt } from "./read-file.ts";
import type { Core } from "./core.ts";
import { keyBytes } from "./holdings.ts";
import { hashLength, keyFromBytes, keyWords, namedFunction, wordsOfBytes, type Key } from "./key.ts";
import { hashRoom, headerBytes, kinds, openRecord, peekHeader, recordBytes, type Header } from "./record.ts";
import { segmentHeaderBytes } from "./segments.ts";
import { flags, noEntry } from "./table.ts";

/** So much is looked at, and copied where it is of use, before others have their turn: well under a millisecond. */
const stepBytes = 128 * 1024;
const stepRecords = 100;
const windowBytes = 1024 * 1024;

/** Throws, and the segment stays, when something could not be copied. */
export async function compactSegment(core: Core, number: number): Promise<number> {
  const { segments, log, room } = core;
  const segment = segments.get(number);
  if (!segment || number === log.current) return 0;
  const firstTarget = log.current;
  const fd = await openFile(segments.path(number));
  try {
    await copyLive(core, { fd, number, sizeBytes: segment.sizeBytes });
  } finally {
    await closeFile(fd);
  }
  await log.settled();
  if (segment.liveBytes > 0) await moveRest(core, number);
  // What it held may have been durable, so the copies have to be before it goes.
  for (const target of segments.numbers.filter((one) => one >= firstTarget)) await log.sync(target);
  await segments.remove(number);
  room.give(segment.sizeBytes);
  return segment.sizeBytes;
}

/** What lies behind damage could not be walked to: one by one, then, by the table. */
async function moveRest(core: Core, number: number): Promise<void> {
  const { table } = core.holdings;
  for (let entry = 0; entry < table.end; entry += 1) {
    if (!table.isTaken(entry) || table.segment(entry) !== number) continue;
    const place = { segment: number, offset: table.offset(entry) };
    const isFile = table.has(entry, flags.file);
    const lengthBytes = isFile ? recordBytes(hashRoom(hashLength(table.fn(entry))) + 16) : table.recordBytes(entry);
    try {
      const { header, bytes } = await core.reader.read({ ...place, lengthBytes });
      await copyRecord(core, { header, bytes: Buffer.from(bytes), at: 0, place }, true);
    } catch (error) {
      if (!isFault(error, "corrupt")) throw error;
      core.options.report("a damaged record was found and let go", place);
      if (table.isTaken(entry) && table.segment(entry) === number) await core.drop([entry]);
    }
  }
}

type Source = { readonly fd: number; readonly number: number; readonly sizeBytes: number };

async function copyLive(core: Core, { fd, number, sizeBytes }: Source): Promise<void> {
  const isOldest = core.segments.numbers[0] === number;
  const buffer = Buffer.allocUnsafeSlow(windowBytes);
  for (let at = segmentHeaderBytes; at < sizeBytes;) {
    const got = await readAt(core, fd, buffer.subarray(0, Math.min(buffer.length, sizeBytes - at)), at);
    let used = 0;
    for (let length = -1; length !== 0; used += length)
      length = await copyStep(core, { buffer, from: used, to: got }, { segment: number, offset: at + used }, isOldest);
    if (used === 0) break; // damaged from here on: nothing behind it can be told apart
    at += used;
  }
}

type Window = { readonly buffer: Buffer; readonly from: number; readonly to: number };

/** Says how many bytes it has dealt with: whole records, and none when there is no whole one any more. */
async function copyStep(core: Core, { buffer, from, to }: Window, place: Place, isOldest: boolean): Promise<number> {
  const copied: Promise<unknown>[] = [];
  let at = from;
  for (let records = 0; records < stepRecords && at - from < stepBytes; records += 1) {
    const header = peekHeader(buffer, at, to);
    const length = header ? recordBytes(header.bodyBytes) : 0;
    if (!header || at + length > to) break;
    const record = { header, bytes: buffer, at, place: { ...place, offset: place.offset + at - from } };
    const writing = copyRecord(core, record, isOldest);
    if (writing) copied.push(writing);
    at += length;
  }
  // What is copied is read from the window, so that must stay as it is until all of it has been.
  await Promise.all(copied);
  if (copied.length === 0) await new Promise(setImmediate);
  return at - from;
}

type Place = { readonly segment: number; readonly offset: number };

type SourceRecord = {
  readonly header: Header;
  readonly bytes: Buffer;
  readonly at: number;
  readonly place: Place;
};

const key: Key = new Uint32Array(keyWords);

function copyRecord(core: Core, record: SourceRecord, isOldest: boolean): Promise<unknown> | undefined {
  const { header, bytes, at, place } = record;
  const body = at + headerBytes;
  switch (header.kind) {
    case kinds.blob:
    case kinds.file:
      keyFromBytes(key, header.fn, bytes, body);
      return moveEntry(core, record, header.fn);
    case kinds.named:
      // In turn, so that a newer one is not just being written.
      return core.nameTurns.take(bytes.toString("latin1", body, body + 4 * keyWords), async () => {
        wordsOfBytes(key, bytes, body, keyWords);
        await moveEntry(core, record, namedFunction);
      });
    case kinds.tenant:
      return appendAgain(core, record, header);
    case kinds.unnamed:
      // Without it an older record of that name would count again, if the log were all there is.
      return isOldest ? undefined : appendAgain(core, record, header);
    case kinds.grants:
    case kinds.pins:
      return appendForOthers(core, record);
    case kinds.gone:
      // What the last checkpoint still has would be there again after a restart, and its file would not.
      return place.segment < core.checkpointSegment ? undefined : core.appendGone(core.absentKeys(keysIn(record)));
    default:
      return undefined;
  }
}

const keysIn = ({ header, bytes, at }: SourceRecord): Buffer =>
  bytes.subarray(at + headerBytes, at + headerBytes + header.bodyBytes);

function moveEntry(core: Core, record: SourceRecord, fn: number): Promise<unknown> | undefined {
  const { table } = core.holdings;
  const { place, bytes, at } = record;
  const entry = table.find(key, fn);
  if (entry === noEntry || table.segment(entry) !== place.segment || table.offset(entry) !== place.offset)
    return undefined;
  if (!openRecord(bytes, at, at + recordBytes(record.header.bodyBytes))) {
    core.options.report("a damaged record was found and let go", place);
    return core.drop([entry]);
  }
  const state = { accessSec: table.accessSec(entry), keepSec: table.keepSec(entry), visible: table.visible(entry) };
  const moved = appendAgain(core, record, { ...record.header, ...state, movedFrom: place });
  const further = fn === namedFunction ? undefined : core.holdings.further.get(entry);
  if (!further) return moved;
  const grants = [...further].map((tenant) => core.appendKeys({ kind: kinds.grants, visible: tenant }, [entry]));
  return Promise.all([moved, ...grants]);
}

const appendAgain = (core: Core, { bytes, at }: SourceRecord, header: Header): Promise<unknown> =>
  core.log.append({
    header,
    bodyBytes: header.bodyBytes,
    fill: (target, to) => bytes.copy(target, to, at + headerBytes, at + headerBytes + header.bodyBytes),
    isOwn: true,
  });

/** Grants and pins of what lives elsewhere. What lives here takes them along when it moves. */
function appendForOthers(core: Core, { header, bytes, at, place }: SourceRecord): Promise<unknown> | undefined {
  const { table } = core.holdings;
  const entries: number[] = [];
  const body = at + headerBytes;
  for (let from = body; from < body + header.bodyBytes; from += keyBytes) {
    wordsOfBytes(key, bytes, from + 4, keyWords);
    const entry = table.find(key, bytes[from] ?? 0);
    if (entry === noEntry || table.segment(entry) === place.segment) continue;
    const isPin = header.kind === kinds.pins;
    if (isPin && (header.keepSec <= core.nowSec() || table.keepSec(entry) > header.keepSec)) continue;
    entries.push(entry);
  }
  return entries.length === 0 ? undefined : core.appendKeys(header, entries);
}
