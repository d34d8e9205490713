/** The ActionIndex on the packed log: a name is an entry of the table, under a hash of its key. */
import { Fault } from "#base/fault.ts";
import type { ActionIndex, Entry, EntryFilter, EntryKey, EntryPage, NewEntry, Written } from "#blobs/action-index.ts";
import { checkEntry } from "#blobs/memory/memory-index.ts";
import type { Core } from "#blobs/disk/core.ts";
import { keyWords, namedFunction } from "./key.ts";
import { KnownNames, wordOf, type Named } from "./known-names.ts";
import { headerBytes, kinds, readUint64, writeUint64 } from "#blobs/disk/log/record.ts";
import { noEntry } from "./table.ts";

const fixedBytes = 4 * keyWords + 8;

/** In the order of `fields`. */
type Stored = readonly [string, string, string, string, number, Entry["notes"] | null];

export function createDiskIndex(core: Core): ActionIndex {
  const { table } = core.holdings;
  const names = new KnownNames();
  /** Writers of one name run one after another, so that the version that one of them read is still current. */
  const inTurn = <T>(hashed: Buffer, work: () => Promise<T>): Promise<T> =>
    core.nameTurns.take(hashed.toString("latin1"), work);

  /** Counts as a use; `noEntry` if there is none. */
  const findAt = (place: number): number => {
    const entry = table.findAt(names.words, wordOf(place), namedFunction);
    if (entry !== noEntry) core.touch(entry);
    return entry;
  };

  const namedNow = (place: number, entry: number): Named | undefined => {
    const [segment, offset] = [table.segment(entry), table.offset(entry)];
    const known = names.named(place, segment, offset);
    if (known) return known;
    const named = parsedNow(core, entry);
    if (named && table.recordBytes(entry) <= recentBytesMax) names.keep(place, { segment, offset }, named);
    return named;
  };

  const promptAt = (place: number): Entry | undefined => {
    const entry = findAt(place);
    return entry === noEntry ? undefined : namedNow(place, entry)?.entry;
  };

  const get = async (key: EntryKey): Promise<Entry | undefined> => {
    for (;;) {
      const place = names.placeOf(key);
      const entry = findAt(place);
      if (entry === noEntry) return undefined;
      const now = namedNow(place, entry);
      if (now) return now.entry;
      const found = await readNamed(core, entry);
      if (found && findAt(names.placeOf(key)) === entry) return found.entry;
    }
  };

  return {
    get,
    async put(key, entry, ifVersion) {
      checkEntry(key, entry.notes);
      const hashed = names.hashOf(key);
      const given = core.tenantNumber(key.tenant);
      const tenant = typeof given === "number" ? given : await given;
      return await inTurn(hashed, async (): Promise<Written> => {
        if (ifVersion !== undefined) {
          const current = await get(key);
          if ((current?.version ?? 0) !== ifVersion) return { kind: "conflict", current };
        }
        return { kind: "written", version: await write(core, { hashed, tenant, key, entry }) };
      });
    },
    async remove(key, ifVersion) {
      const hashed = names.hashOf(key);
      return await inTurn(hashed, async () => {
        const current = await get(key);
        if (!current || (ifVersion !== undefined && current.version !== ifVersion)) return false;
        await core.append({
          header: { kind: kinds.unnamed },
          bodyBytes: fixedBytes,
          fill(target, at) {
            target.set(hashed, at);
            writeUint64(target, at + 4 * keyWords, core.log.sequence + 1);
          },
          isOwn: true,
        });
        return true;
      });
    },
    list: (filter) => list(core, filter),
    prompt: (key) => promptAt(names.placeOf(key)),
    promptHash: (owner, hash, sizeBytes) => promptAt(names.placeOfHash(owner, hash, sizeBytes)),
  };
}

type NewNamed = {
  readonly hashed: Buffer;
  readonly tenant: number;
  readonly key: EntryKey;
  readonly entry: NewEntry;
};

async function write(core: Core, { hashed, tenant, key, entry }: NewNamed): Promise<number> {
  const { digest, principal, atMs, notes } = entry;
  const stored: Stored = [key.space, key.name, digest, principal, atMs, notes ?? null];
  const body = Buffer.from(JSON.stringify(stored));
  let version = 0;
  await core.append({
    header: { kind: kinds.named, fn: namedFunction, visible: tenant, accessSec: core.nowSec() },
    bodyBytes: fixedBytes + body.length,
    fill(target, at) {
      version = core.log.sequence + 1; // unique, because sequence numbers are
      target.set(hashed, at);
      writeUint64(target, at + 4 * keyWords, version);
      target.set(body, at + fixedBytes);
    },
  });
  return version;
}

function parseNamed(body: Buffer): Named {
  const version = readUint64(body, 4 * keyWords);
  const [space, name, digest, principal, atMs, notes] = JSON.parse(body.toString("utf8", fixedBytes)) as Stored;
  return { space, name, entry: { digest, version, principal, atMs, ...(notes && { notes }) } };
}

/** Entries with long notes are not worth the memory. */
const recentBytesMax = 1_024;

function parsedNow(core: Core, entry: number): Named | undefined {
  const held = core.slabs.bytes(entry);
  if (held) return parseNamed(held);
  try {
    const found = core.recordNow(entry);
    if (found?.header.kind !== kinds.named) return undefined;
    const body = found.bytes.subarray(headerBytes, headerBytes + found.header.bodyBytes);
    core.slabs.keep(entry, body);
    return parseNamed(body);
  } catch {
    return undefined;
  }
}

/** Undefined if it was removed or moved while it was read. */
async function readNamed(core: Core, entry: number): Promise<Named | undefined> {
  const now = parsedNow(core, entry);
  if (now) return now;
  const { table } = core.holdings;
  const key = table.key(entry).slice();
  const isSame = (): boolean => table.find(key, namedFunction) === entry;
  try {
    const { header, bytes } = await core.recordOf(entry);
    if (header.kind !== kinds.named || !isSame()) return undefined;
    return parseNamed(bytes.subarray(headerBytes, headerBytes + header.bodyBytes));
  } catch (error) {
    if (!isSame()) return undefined;
    if (!(error instanceof Fault) || error.code !== "corrupt") throw error;
    core.options.report("a damaged name was found and dropped", {});
    await core.drop([entry]);
    return undefined;
  }
}

/** Entries to look at before yielding to other work. */
const slice = 20_000;

/** In the order of entry numbers, which stay the same while nothing changes. */
async function list(core: Core, { tenant, spacePrefix = "", after, limit }: EntryFilter): Promise<EntryPage> {
  const { table } = core.holdings;
  const wanted = core.holdings.tenantNumber(tenant);
  const entries: (EntryKey & Entry)[] = [];
  if (wanted === undefined) return { entries };
  for (let at = after === undefined ? 0 : Number(after); at < table.end; at += 1) {
    if (at % slice === slice - 1) await new Promise(setImmediate);
    if (!table.isTaken(at) || table.fn(at) !== namedFunction || table.visible(at) !== wanted) continue;
    const found = await readNamed(core, at);
    if (!found?.space.startsWith(spacePrefix)) continue;
    if (entries.length === limit) return { entries, next: String(at) };
    entries.push({ tenant, space: found.space, name: found.name, ...found.entry });
  }
  return { entries };
}
