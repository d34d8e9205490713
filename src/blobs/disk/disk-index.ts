/** The ActionIndex on the packed log: a name is an entry of the table, filed under a hash of its key. */
import { hash as hashOnce } from "node:crypto";
import { Fault } from "#base/fault.ts";
import type { ActionIndex, Entry, EntryFilter, EntryKey, EntryPage, NewEntry, Written } from "#blobs/action-index.ts";
import { checkEntry } from "#blobs/memory-index.ts";
import type { Core } from "./core.ts";
import { keyWords, namedFunction, wordsOfBytes } from "./key.ts";
import { Recent } from "./recent.ts";
import { headerBytes, kinds, readUint64, writeUint64 } from "./record.ts";
import { noEntry } from "./table.ts";

const fixedBytes = 4 * keyWords + 8;

/** The order is that of `fields`. */
type Stored = readonly [string, string, string, string, number, Entry["notes"] | null];

export function createDiskIndex(core: Core): ActionIndex {
  /** Writers of one name come one after the other, so that the version one of them looked at is still it. */
  const inTurn = <T>(hashed: Buffer, work: () => Promise<T>): Promise<T> =>
    core.nameTurns.take(hashed.toString("latin1"), work);
  const get = async (hashed: Buffer): Promise<Entry | undefined> => {
    for (;;) {
      const entry = find(core, hashed);
      if (entry === noEntry) return undefined;
      core.touch(entry);
      const found = await readNamed(core, entry);
      if (found && find(core, hashed) === entry) return found.entry;
    }
  };

  return {
    get: (key) => get(hashOf(key)),
    async put(key, entry, ifVersion) {
      checkEntry(key, entry.notes);
      const hashed = hashOf(key);
      const given = core.tenantNumber(key.tenant);
      const tenant = typeof given === "number" ? given : await given;
      return await inTurn(hashed, async (): Promise<Written> => {
        if (ifVersion !== undefined) {
          const current = await get(hashed);
          if ((current?.version ?? 0) !== ifVersion) return { kind: "conflict", current };
        }
        return { kind: "written", version: await write(core, { hashed, tenant, key, entry }) };
      });
    },
    async remove(key, ifVersion) {
      const hashed = hashOf(key);
      return await inTurn(hashed, async () => {
        const current = await get(hashed);
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
    prompt(key) {
      const entry = find(core, hashOf(key));
      if (entry === noEntry) return undefined;
      core.touch(entry);
      return namedNow(core, entry)?.entry;
    },
  };
}

const scratch = new Uint32Array(keyWords);

function find(core: Core, hashed: Buffer): number {
  wordsOfBytes(scratch, hashed, 0, keyWords);
  return core.holdings.table.find(scratch, namedFunction);
}

/** Keys that were asked for lately, by their text: looking one up is cheaper than hashing it. */
const recentHashes = new Recent<string, Buffer>(16_384);

function hashOf({ tenant, space, name }: EntryKey): Buffer {
  const text = `${tenant.length} ${space.length} ${tenant}${space}${name}`;
  const known = recentHashes.get(text);
  if (known) return known;
  const hash = hashOnce("sha256", text, "buffer");
  recentHashes.set(text, hash);
  return hash;
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
      version = core.log.sequence + 1; // no two records have the same
      target.set(hashed, at);
      writeUint64(target, at + 4 * keyWords, version);
      target.set(body, at + fixedBytes);
    },
  });
  return version;
}

type Named = { readonly space: string; readonly name: string; readonly entry: Entry };

function parseNamed(body: Buffer): Named {
  const version = readUint64(body, 4 * keyWords);
  const [space, name, digest, principal, atMs, notes] = JSON.parse(body.toString("utf8", fixedBytes)) as Stored;
  return { space, name, entry: { digest, version, principal, atMs, ...(notes && { notes }) } };
}

/** A record never changes, so what it says is known by its place. */
type Placed = { readonly segment: number; readonly offset: number; readonly named: Named };
/** Those with many notes are not worth the memory. */
const recentBytesMax = 1_024;
const read = new WeakMap<Core, Recent<number, Placed>>();

function namedNow(core: Core, entry: number): Named | undefined {
  let recent = read.get(core);
  if (!recent) read.set(core, (recent = new Recent(16_384)));
  const { table } = core.holdings;
  const [segment, offset] = [table.segment(entry), table.offset(entry)];
  const known = recent.get(entry);
  if (known?.segment === segment && known.offset === offset) return known.named;
  const named = parsedNow(core, entry);
  if (named && table.recordBytes(entry) <= recentBytesMax) recent.set(entry, { segment, offset, named });
  return named;
}

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

/** Undefined: it went, or moved, while it was being read. */
async function readNamed(core: Core, entry: number): Promise<Named | undefined> {
  const now = namedNow(core, entry);
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
    core.options.report("a damaged name was found and let go", {});
    await core.drop([entry]);
    return undefined;
  }
}

/** Looks at so many entries of the table before others have their turn. */
const slice = 20_000;

/** By the numbers of entries, which stay the same while nothing changes. */
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
