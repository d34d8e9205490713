/** Checks one entry of the table against what is on the disk, and drops it if it is damaged. */
import { digestFunctions, digestText, type Digest, type DigestParts } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { Core } from "#blobs/disk/core.ts";
import { headerBytes } from "#blobs/disk/log/record.ts";
import { hashLength, namedFunction } from "#blobs/disk/table/key.ts";
import { flags } from "#blobs/disk/table/table.ts";
import { verifyEntry } from "#blobs/disk/upload/verify.ts";
import type { BetweenSteps } from "./file-checks.ts";
import { looksMax } from "./same-copy.ts";

export type CheckedEntry = {
  readonly bytes: number;
  /** Of a blob that was wrong; it has been dropped. */
  readonly wrong?: Digest;
};

/** Undefined if there is no blob or name, or if a damaged record does not even say which it was: that is dropped. */
export async function checkEntry(core: Core, entry: number, between?: BetweenSteps): Promise<CheckedEntry | undefined> {
  const { table } = core.holdings;
  for (let looks = 0; looks < looksMax && table.isTaken(entry); looks += 1) {
    if (table.fn(entry) === namedFunction) return await checkName(core, entry, between);
    const parts = await partsOfEntry(core, entry);
    if (!parts) return undefined;
    const verdict = await verifyEntry(core, entry, parts, between);
    if (verdict === "changed") continue;
    if (verdict === "right") return { bytes: parts.sizeBytes };
    const wrong = digestText(parts.fn, parts.hash, parts.sizeBytes);
    await core.dropCopy(entry, wrong);
    return { bytes: parts.sizeBytes, wrong };
  }
  return undefined;
}

async function checkName(core: Core, entry: number, between?: BetweenSteps): Promise<CheckedEntry | undefined> {
  const bytes = core.holdings.table.recordBytes(entry);
  if (!(await readable(core, entry, () => core.recordOf(entry)))) return undefined;
  await between?.(bytes);
  return { bytes };
}

/** False if its record was damaged: then it has been dropped. */
async function readable<T>(core: Core, entry: number, read: () => Promise<T>): Promise<T | undefined> {
  const { table } = core.holdings;
  const [segment, offset] = [table.segment(entry), table.offset(entry)];
  try {
    return await read();
  } catch (error) {
    if (!isFault(error, "corrupt")) throw error;
    const isSame = table.isTaken(entry) && table.segment(entry) === segment && table.offset(entry) === offset;
    if (!isSame) return undefined;
    core.options.report("a damaged record was found and dropped", { segment, offset });
    core.damagedBlobs += 1;
    await core.drop([entry]);
    return undefined;
  }
}

/** The digest: the key itself for most functions; for longer hashes it is in the record. */
async function partsOfEntry(core: Core, entry: number): Promise<DigestParts | undefined> {
  const { table } = core.holdings;
  const number = table.fn(entry);
  const fn = digestFunctions[number];
  if (!fn) return undefined;
  const sizeBytes = table.sizeOf(entry);
  const key = table.key(entry);
  const length = hashLength(number);
  if (length <= key.byteLength)
    return { fn, hash: Buffer.from(key.buffer, key.byteOffset, length).toString("hex"), sizeBytes };
  const [segment, offset] = [table.segment(entry), table.offset(entry)];
  const record = await readable(core, entry, () =>
    table.has(entry, flags.file)
      ? core.reader.read({ segment, offset, lengthBytes: headerBytes + length + 16 })
      : core.recordOf(entry),
  );
  return record && { fn, hash: record.bytes.toString("hex", headerBytes, headerBytes + length), sizeBytes };
}
