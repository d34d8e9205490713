/**
 * The table as one file, so that a restart need not read the whole log. It is written in pieces while entries change.
 * The log from the position in the checkpoint, applied on top of it, gives the exact state.
 */
import { readFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { realSyncs, type Syncs } from "#blobs/syncs.ts";
import { asDiskFault } from "#blobs/disk/disk-fault.ts";
import type { Holdings } from "#blobs/disk/holdings.ts";
import { keyWords, type Key } from "#blobs/disk/table/key.ts";
import { entriesPerChunk, entryWords, noEntry } from "#blobs/disk/table/table.ts";

export type Position = { readonly segment: number; readonly offset: number; readonly sequence: number };

type Facts = Position & { readonly lastSec: number; readonly tenants: readonly (readonly [string, number])[] };

const magic = Buffer.from("MRCKPT1\n");
const sections = { facts: 1, chunk: 2, grants: 3, end: 4 } as const;
const sectionHeaderBytes = 16;
const grantWords = keyWords + 2;
const grantsPerSection = 10_000;

export const checkpointPath = (root: string): string => join(root, "checkpoint");

/** Everything in the log before `position` must have been applied. */
export async function writeCheckpoint(
  root: string,
  holdings: Holdings,
  position: Position,
  syncs: Syncs = realSyncs,
): Promise<number> {
  const path = checkpointPath(root);
  const facts: Facts = { ...position, lastSec: holdings.lastSec, tenants: [...holdings.tenants] };
  try {
    await using file = await open(`${path}.new`, "w", 0o600);
    let sizeBytes = 0;
    const put = async (type: number, payload: Uint8Array): Promise<void> => {
      const header = Buffer.alloc(sectionHeaderBytes);
      header.writeUInt32LE(type, 4);
      header.writeUInt32LE(payload.length, 8);
      header.writeUInt32LE(crc32(payload, crc32(header.subarray(4))), 0);
      await file.writev([header, payload]);
      sizeBytes += header.length + payload.length;
    };
    await file.write(magic);
    await put(sections.facts, padded(JSON.stringify(facts)));
    // One buffer for all copies: allocating half a MiB for each would burden the garbage collector.
    const copy = new Uint32Array(entriesPerChunk * entryWords);
    for (let i = 0; i < holdings.table.chunkCount; i += 1)
      await put(sections.chunk, asBytes(holdings.table.copyChunk(i, copy)));
    for (const grants of grantsOf(holdings)) await put(sections.grants, asBytes(grants));
    await put(sections.end, Buffer.alloc(0));
    await syncs.file(file.fd, `${path}.new`);
    await rename(`${path}.new`, path);
    // From here on compaction relies on this checkpoint and removes what only the previous one needs.
    await syncs.folder(root);
    return magic.length + sizeBytes;
  } catch (error) {
    await rm(`${path}.new`, { force: true }).catch(() => {});
    throw asDiskFault(error, "write checkpoint");
  }
}

/** Reads into empty holdings; undefined, without changes, if there is no checkpoint or it is damaged. */
export function readCheckpoint(root: string, holdings: Holdings): Position | undefined {
  const found = parse(readOrNothing(checkpointPath(root)));
  if (!found) return undefined;
  const { facts, chunks, grants } = found;
  for (const [name, number] of facts.tenants) holdings.nameTenant(name, number);
  holdings.lastSec = facts.lastSec;
  holdings.table.load(chunks);
  const key: Key = new Uint32Array(keyWords);
  for (const words of grants)
    for (let from = 0; from < words.length; from += grantWords) {
      key.set(words.subarray(from, from + keyWords));
      const entry = holdings.table.find(key, words[from + keyWords] ?? 0);
      if (entry !== noEntry) holdings.grant(entry, words[from + keyWords + 1] ?? 0);
    }
  return facts;
}

type Parsed = {
  readonly facts: Facts;
  readonly chunks: readonly Uint32Array[];
  readonly grants: readonly Uint32Array[];
};

function parse(bytes: Buffer): Parsed | undefined {
  if (!bytes.subarray(0, magic.length).equals(magic)) return undefined;
  let facts: Facts | undefined;
  const chunks: Uint32Array[] = [];
  const grants: Uint32Array[] = [];
  for (let at = magic.length; at + sectionHeaderBytes <= bytes.length;) {
    const [sum, type, length] = [bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at + 8)];
    const header = bytes.subarray(at + 4, at + sectionHeaderBytes);
    const payload = bytes.subarray(at + sectionHeaderBytes, at + sectionHeaderBytes + length);
    if (payload.length !== length || crc32(payload, crc32(header)) !== sum) return undefined;
    if (type === sections.end) return facts && { facts, chunks, grants };
    if (type === sections.facts) facts = JSON.parse(payload.toString("utf8")) as Facts;
    else if (type === sections.chunk) chunks.push(asWords(payload, entryWords));
    else if (type === sections.grants) grants.push(asWords(payload, grantWords));
    at += sectionHeaderBytes + length;
  }
  return undefined;
}

function readOrNothing(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw asDiskFault(error, "read checkpoint");
  }
}

function* grantsOf({ table, further }: Holdings): Generator<Uint32Array> {
  let words: number[] = [];
  // A copy: changes made while this is written are in the log.
  for (const [entry, tenants] of Array.from(further))
    for (const tenant of tenants) {
      if (!table.isTaken(entry)) continue;
      words.push(...table.key(entry), table.fn(entry), tenant);
      if (words.length < grantsPerSection * grantWords) continue;
      yield Uint32Array.from(words);
      words = [];
    }
  yield Uint32Array.from(words);
}

/** Pads the text, so that the words after it are aligned. */
function padded(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3, " ")]);
}

const asBytes = (words: Uint32Array): Uint8Array => new Uint8Array(words.buffer, words.byteOffset, words.byteLength);

function asWords(payload: Buffer, multiple: number): Uint32Array {
  const count = Math.floor(payload.length / 4 / multiple) * multiple;
  if (payload.byteOffset % 4 === 0) return new Uint32Array(payload.buffer, payload.byteOffset, count);
  return new Uint32Array(Uint8Array.from(payload).buffer, 0, count);
}
