/** The blobs of a disk store as one tenant sees them (B5), or as the node itself does. */
import { promisify } from "node:util";
import { constants, zstdCompress, zstdCompressSync } from "node:zlib";
import { digestText, parseDigest, type Digest, type DigestParts } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { hashHex, partsOf } from "#blobs/hashing.ts";
import type { BlobStore, Form, Prompt, Range } from "#blobs/store.ts";
import { unpacked } from "#blobs/zstd.ts";
import { fileName } from "./blob-files.ts";
import type { Core } from "./core.ts";
import { bitTenantMax, nodeItself } from "./holdings.ts";
import { functionNumber, hashLength, keyFromBytes, keyFromHex, keyFromPlain, keyWords, type Key } from "./table/key.ts";
import { looksMax } from "./check/same-copy.ts";
import { checkedFirstBytesMax, openLarge, readLarge } from "./upload/large-blobs.ts";
import { lendFile } from "./lend-file.ts";
import { lendPath } from "./lend-path.ts";
import { packedNow, readPacked, writePacked } from "./log/packed-blobs.ts";
import { kinds } from "./log/record.ts";
import { flags, groupMax, noEntry } from "./table/table.ts";
import { verifyEntry } from "./upload/verify.ts";

export type TenantView = {
  /** Undefined for a tenant that never stored anything. */
  readonly number: () => number | undefined;
  /** The number, assigned if there is none: for a tenant that stores something. */
  readonly assigned: () => number | Promise<number>;
};

export const nodeView: TenantView = { number: () => nodeItself, assigned: () => nodeItself };

export const viewOf = (core: Core, tenant: string): TenantView => {
  let known: number | undefined;
  return {
    number: () => (known ??= core.holdings.tenantNumber(tenant)),
    assigned: () => known ?? core.tenantNumber(tenant),
  };
};

/** Stores blobs too large for the log, and verifies them. */
export type StoreLarge = {
  write(parts: DigestParts, source: AsyncIterable<Uint8Array>): Promise<void>;
  /** The file as it is; false if only a copy can be stored. */
  adopt(parts: DigestParts, path: string): Promise<boolean>;
};

export function createDiskBlobs(core: Core, view: TenantView, large: StoreLarge): BlobStore {
  const find = (parts: DigestParts): number => core.findFor(parts, view.number());
  return {
    missing: async (digests) => digests.filter((digest) => find(partsOf(digest)) === noEntry),
    read: (digest, range, form) => readBlob(core, find, { digest, range, form: form ?? "plain" }),
    write: (digest, source, form = "plain") =>
      writeSoon(core, view, { digest, source, form }) ?? write(digest, source, form),
    pin: (digests, forMs) => pin(core, find, digests, forMs),
    async file(digest) {
      const parts = partsOf(digest);
      const entry = find(parts);
      return entry === noEntry ? undefined : await lendFile(core, entry, parts);
    },
    adopt: (digest, path) => large.adopt(partsOf(digest), path),
    async path(digest) {
      const parts = partsOf(digest);
      const entry = find(parts);
      return entry === noEntry ? undefined : await lendPath(core, entry, parts);
    },
    prompt: promptOf(core, view, find),
  };

  async function write(digest: Digest, source: AsyncIterable<Uint8Array> | Uint8Array, form: Form): Promise<void> {
    const parts = partsOf(digest);
    const entry = find(parts);
    if (entry !== noEntry && (await isGood(core, entry, parts))) return;
    if (parts.sizeBytes > core.options.packedBytesMax) {
      const plain = form === "zstd" ? unpacked(source, parts.sizeBytes) : asStream(source);
      return await large.write(parts, plain);
    }
    const bytes = await collected(parts, source, form);
    checkBytes(parts, bytes);
    await keepSmall(core, view, parts, bytes);
  }
}

type Writing = {
  readonly digest: Digest;
  readonly source: AsyncIterable<Uint8Array> | Uint8Array;
  readonly form: Form;
};

/** The fast path: most writes are small, plain and new. */
function writeSoon(core: Core, view: TenantView, { digest, source, form }: Writing): Promise<void> | undefined {
  const { compression, packedBytesMax } = core.options;
  const tenant = view.number();
  const parts = parseDigest(digest);
  if (!parts || form !== "plain" || compression !== "none" || !(source instanceof Uint8Array)) return undefined;
  if (tenant === undefined || tenant > bitTenantMax || parts.sizeBytes > packedBytesMax) return undefined;
  if (source.length !== parts.sizeBytes || core.find(parts) !== noEntry) return undefined;
  if (hashHex(parts.fn, source) !== parts.hash) return undefined;
  return writePacked(core, parts, { bytes: source, isZstd: false, visible: visibleTo(tenant) });
}

/** The tenant's bit in an entry; tenants without a bit need a grant record. */
export const visibleTo = (tenant: number): number => (tenant > bitTenantMax || tenant === nodeItself ? 0 : 1 << tenant);

export function checkBytes({ fn, hash, sizeBytes }: DigestParts, bytes: Uint8Array): void {
  if (bytes.length === sizeBytes && hashHex(fn, bytes) === hash) return;
  const why = bytes.length === sizeBytes ? "the bytes have another digest" : "the size differs from the digest's";
  throw new Fault("invalid", "write blob", { hash, sizeBytes, got: bytes.length, why });
}

/** Stores verified bytes once, and grants them to the tenant. */
export async function keepSmall(core: Core, view: TenantView, parts: DigestParts, bytes: Uint8Array): Promise<void> {
  const given = view.assigned();
  const tenant = typeof given === "number" ? given : await given;
  const entry = core.find(parts);
  if (entry !== noEntry && (await isGood(core, entry, parts))) return await grant(core, entry, tenant);
  const stored = await storedForm(core, bytes);
  await writePacked(core, parts, { ...stored, visible: visibleTo(tenant) });
  const written = core.find(parts);
  if (tenant > bitTenantMax && written !== noEntry) await grant(core, written, tenant);
}

/**
 * Whether the copy that is here needs no repair by the bytes that a writer offers. If it does, they replace it, and its
 * pins and tenants stay. A very large file that was not checked yet is replaced without reading it, and so is a copy
 * that was evicted or changed during the check.
 */
export async function isGood(core: Core, entry: number, parts: DigestParts): Promise<boolean> {
  const { table } = core.holdings;
  // It may be in memory or in a file, and be unknown after a restart.
  if (!core.segments.isWhole(table.segment(entry))) return false;
  if (!table.has(entry, flags.file))
    return packedNow(core, entry) !== undefined || (await verifyEntry(core, entry, parts)) === "right";
  if (core.checks.isTrustedNow(entry)) return true;
  return parts.sizeBytes <= checkedFirstBytesMax && (await core.checks.check(entry, parts)) === "right";
}

export async function grant(core: Core, entry: number, tenant: number): Promise<void> {
  core.touch(entry);
  if (core.holdings.maySee(entry, tenant)) return;
  await core.appendKeys({ kind: kinds.grants, visible: tenant }, [entry], false);
}

const compressed = promisify(zstdCompress) as (bytes: Uint8Array, options: object) => Promise<Buffer>;
const level1 = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Compressing less gains too little. */
const compressBytesMin = 512;

async function storedForm(
  core: Core,
  bytes: Uint8Array,
): Promise<{ readonly bytes: Uint8Array; readonly isZstd: boolean }> {
  if (core.options.compression === "none" || bytes.length < compressBytesMin) return { bytes, isZstd: false };
  const frame = await compressed(bytes, level1);
  return frame.length < bytes.length * 0.9 ? { bytes: frame, isZstd: true } : { bytes, isZstd: false };
}

type ReadRequest = { readonly digest: Digest; readonly range: Range | undefined; readonly form: Form };

async function* readBlob(
  core: Core,
  find: (parts: DigestParts) => number,
  { digest, range, form }: ReadRequest,
): AsyncGenerator<Uint8Array> {
  const parts = partsOf(digest);
  const notFound = (): Fault => new Fault("not-found", "read blob", { digest });
  if (find(parts) === noEntry) throw notFound();
  const from = range?.offset ?? 0;
  if (!(from >= 0 && from <= parts.sizeBytes))
    throw new Fault("invalid", "read blob", { digest, offset: from, why: "the range begins outside the blob" });
  const to = Math.min(parts.sizeBytes, from + (range?.length ?? parts.sizeBytes));
  const { table } = core.holdings;
  for (let looks = 0; looks < looksMax; looks += 1) {
    const entry = find(parts);
    if (entry === noEntry) throw notFound();
    if (table.has(entry, flags.file)) {
      const span = { from, to };
      const file = await openLarge(core, entry, parts, span);
      if (file) return yield* readLarge(core, file, parts, { span, form });
      continue;
    }
    const all = packedNow(core, entry) ?? (await readPacked(core, entry, parts));
    if (!all) continue;
    const part = all.subarray(from, to);
    // A copy, so that a reader that changes its bytes does not change the store's (B1).
    return yield form === "zstd" ? zstdCompressSync(part, level1) : Uint8Array.prototype.slice.call(part);
  }
  throw new Fault("unavailable", "read blob", { digest, why: "its copy changes all the time; read it again" });
}

/** A damaged copy is dropped; the lookup that follows reports that it is missing. */
async function checkSuspect(core: Core, find: () => number, parts: DigestParts): Promise<void> {
  const { table } = core.holdings;
  for (let looks = 0; looks < looksMax; looks += 1) {
    const entry = find();
    if (entry === noEntry || !table.has(entry, flags.suspect)) return;
    const verdict = await verifyEntry(core, entry, parts);
    if (verdict === "wrong") await core.dropCopy(entry, digestText(parts.fn, parts.hash, parts.sizeBytes));
    if (verdict !== "changed") return;
  }
}

async function* asStream(source: AsyncIterable<Uint8Array> | Uint8Array): AsyncGenerator<Uint8Array> {
  if (source instanceof Uint8Array) yield source;
  else yield* source;
}

async function collected(
  { sizeBytes, hash }: DigestParts,
  source: AsyncIterable<Uint8Array> | Uint8Array,
  form: Form,
): Promise<Uint8Array> {
  if (form === "plain" && source instanceof Uint8Array) return source;
  const parts: Uint8Array[] = [];
  let got = 0;
  for await (const part of form === "zstd" ? unpacked(source, sizeBytes) : asStream(source)) {
    got += part.length;
    if (got > sizeBytes) throw new Fault("invalid", "write blob", { hash, why: "more bytes than the digest says" });
    parts.push(Uint8Array.from(part)); // a copy, because the source may reuse its memory
  }
  return Buffer.concat(parts);
}

async function pin(
  core: Core,
  find: (parts: DigestParts) => number,
  digests: readonly Digest[],
  forMs: number,
): ReturnType<BlobStore["pin"]> {
  const { table } = core.holdings;
  const lookUp = (): number[] =>
    digests.map((digest) => {
      const parts = parseDigest(digest);
      return parts ? find(parts) : noEntry;
    });
  for (const [i, entry] of lookUp().entries()) {
    if (entry === noEntry || !table.has(entry, flags.suspect)) continue;
    const parts = partsOf(digests[i] ?? "");
    await checkSuspect(core, () => find(parts), parts);
  }
  const entries = lookUp();
  if (entries.includes(noEntry)) return { missing: digests.filter((_, i) => entries[i] === noEntry) };
  if (entries.length === 0) return { digests, pinnedForMs: forMs };
  const keepSec = core.untilSec(forMs);
  // Before the record is written, so that nothing is evicted meanwhile (B2).
  for (const entry of entries) table.setKeepSec(entry, Math.max(table.keepSec(entry), keepSec));
  const names = entries
    .filter((entry) => table.has(entry, flags.file) && !table.has(entry, flags.durable))
    .map((entry) => ({ entry, name: fileName(table.fn(entry), table.key(entry).slice()) }));
  const segments = new Set(entries.map((entry) => table.segment(entry)));
  await core.appendKeys({ kind: kinds.pins, keepSec }, [...new Set(entries)]);
  segments.add(core.log.applied.segment);
  for (const { entry, name } of names) {
    await core.files.sync(name);
    table.setFlag(entry, flags.durable, true); // pinned, so it is still the same entry
  }
  await Promise.all([...segments].map((segment) => core.log.sync(segment)));
  return { digests, pinnedForMs: forMs };
}

function promptOf(core: Core, view: TenantView, find: (parts: DigestParts) => number): Prompt {
  const key: Key = new Uint32Array(keyWords);
  const entries = new Int32Array(groupMax);
  const { holdings } = core;
  const { table } = holdings;
  const sha256 = functionNumber("sha256");
  /** The entry under the current key, if it has that size and the tenant may see it. */
  const seen = (fn: number, sizeBytes: number): number => {
    const tenant = view.number();
    const entry = tenant === undefined ? noEntry : table.find(key, fn);
    if (entry === noEntry || table.sizeOf(entry) !== sizeBytes) return noEntry;
    return holdings.maySee(entry, tenant as number) ? entry : noEntry;
  };
  /** Like `find`, without parsing a digest in the most common form. */
  const findShort = (digest: Digest): number => {
    const sizeBytes = keyFromPlain(key, digest);
    if (sizeBytes < 0) {
      const parts = parseDigest(digest);
      return parts ? find(parts) : noEntry;
    }
    const entry = seen(sha256, sizeBytes);
    if (entry !== noEntry) core.touch(entry);
    return entry;
  };
  return {
    has(fn, hash, at, sizeBytes) {
      const number = functionNumber(fn);
      keyFromBytes(key, number, hash, at);
      const entry = seen(number, sizeBytes);
      if (entry === noEntry) return false;
      core.touch(entry);
      return true;
    },
    hasMany(fn, { hashes, words, sizes, count }, found) {
      const tenant = view.number();
      if (tenant === undefined) return;
      core.lookAtClock();
      const number = functionNumber(fn);
      if (hashLength(number) !== 4 * keyWords) {
        for (let i = 0, step = hashLength(number); i < count; i += 1)
          if (this.has(fn, hashes, i * step, sizes[i] ?? 0)) found[i] = 1;
        return;
      }
      const keys = words ?? new Uint32Array(hashes.buffer, hashes.byteOffset, count * keyWords);
      for (let from = 0; from < count; from += groupMax) {
        const some = Math.min(groupMax, count - from);
        table.findGroup(keys, from, some, number, entries);
        for (let i = 0; i < some; i += 1) {
          const entry = entries[i] as number;
          if (entry === noEntry || table.sizeOf(entry) !== sizes[from + i] || !holdings.maySee(entry, tenant)) continue;
          core.touchRoughly(entry);
          found[from + i] = 1;
        }
      }
    },
    sizeOf(fn, hash) {
      const tenant = view.number();
      const number = functionNumber(fn);
      keyFromHex(key, number, hash);
      const entry = table.find(key, number);
      if (tenant === undefined || entry === noEntry || !holdings.maySee(entry, tenant)) return undefined;
      return table.sizeOf(entry);
    },
    bytes(digest) {
      const entry = findShort(digest);
      if (entry === noEntry) return undefined;
      return core.slabs.shown(entry) ?? (packedNow(core, entry) && core.slabs.shown(entry));
    },
  };
}
