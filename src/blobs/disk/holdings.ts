/**
 * What the store holds, and which tenants may see it: the state that results from applying the log's records in order.
 * The same code applies a record that was just written and one that is replayed after a restart.
 */
import { assert } from "#base/assert.ts";
import { hashLength, keyFromBytes, keyWords, namedFunction, wordsOfBytes, type Key } from "./table/key.ts";
import {
  paddedHashBytes,
  headerBytes,
  kinds,
  readUint64,
  recordBytes,
  type Header,
  type RecordPosition,
} from "./log/record.ts";
import { flags, noEntry, Table } from "./table/table.ts";

/** Called when disk usage changes; not during recovery, which counts at its end. */
export type Accounts = {
  /** So many more bytes of the segment are live, or fewer if negative. */
  live(segment: number, bytes: number): void;
  file(bytes: number): void;
};

/** The node itself: it sees every blob, and owns none. */
export const nodeItself = 0;
/** Tenants up to this number have a bit in each entry; the others are in sets. */
export const bitTenantMax = 31;
const hasMore = 1;
export const keyBytes = 4 + 4 * keyWords;
const silent: Accounts = { live: () => {}, file: () => {} };

export class Holdings {
  readonly table = new Table();
  readonly #tenants = new Map<string, number>();
  readonly #more = new Map<number, Set<number>>();
  readonly #key: Key = new Uint32Array(keyWords);
  accounts: Accounts = silent;
  /**
   * During replay: the current version of each name. Copies of older versions may come after newer ones, because they
   * are made later.
   */
  #versions: Map<string, number> | undefined = new Map();
  /** During replay: whether the segment still exists. */
  hasSegment: (segment: number) => boolean = () => true;
  /** The latest time in the log. */
  lastSec = 0;

  get tenants(): ReadonlyMap<string, number> {
    return this.#tenants;
  }

  /** Grants to tenants without a bit. */
  get further(): ReadonlyMap<number, ReadonlySet<number>> {
    return this.#more;
  }

  tenantNumber(name: string): number | undefined {
    return this.#tenants.get(name);
  }

  nameTenant(name: string, number: number): void {
    this.#tenants.set(name, number);
  }

  maySee(entry: number, tenant: number): boolean {
    if (tenant === nodeItself) return true;
    if (tenant <= bitTenantMax) return ((this.table.visible(entry) >>> tenant) & 1) === 1;
    return this.#more.get(entry)?.has(tenant) ?? false;
  }

  grant(entry: number, tenant: number): void {
    const { table } = this;
    if (tenant === nodeItself) return;
    if (tenant <= bitTenantMax) return table.setVisible(entry, table.visible(entry) | (1 << tenant));
    const more = this.#more.get(entry);
    if (more) more.add(tenant);
    else this.#more.set(entry, new Set([tenant]));
    table.setVisible(entry, table.visible(entry) | hasMore);
  }

  /** Removes it from the table; the caller writes the record. */
  remove(entry: number): void {
    this.#uncount(entry);
    this.#more.delete(entry);
    this.table.remove(entry);
  }

  #uncount(entry: number): void {
    const { table } = this;
    this.accounts.live(table.segment(entry), -this.#recordBytes(entry));
    if (table.has(entry, flags.file)) this.accounts.file(-table.fileBytes(entry));
  }

  #recordBytes(entry: number): number {
    if (!this.table.has(entry, flags.file)) return this.table.recordBytes(entry);
    return recordBytes(paddedHashBytes(hashLength(this.table.fn(entry))) + 16);
  }

  /** Records applied from now on were just written. */
  endRecovery(): void {
    this.#versions = undefined;
  }

  /** Recounts the live bytes of each segment and the size of the files. */
  count(): void {
    const { table } = this;
    for (let entry = 0; entry < table.end; entry += 1) {
      if (!table.isTaken(entry)) continue;
      this.accounts.live(table.segment(entry), this.#recordBytes(entry));
      if (table.has(entry, flags.file)) this.accounts.file(table.fileBytes(entry));
    }
  }

  /** Returns the entry that the record is about, if there is exactly one. */
  apply(bytes: Buffer, at: number, header: Header, place: RecordPosition): number {
    this.lastSec = Math.max(this.lastSec, header.accessSec);
    const body = at + headerBytes;
    switch (header.kind) {
      case kinds.blob:
      case kinds.file:
        return this.#applyBlob(bytes, body, header, place);
      case kinds.named:
        return this.#applyNamed(bytes, body, header, place);
      case kinds.unnamed:
        return this.#applyUnnamed(bytes, body, header);
      case kinds.tenant:
        this.#tenants.set(bytes.toString("utf8", body, body + header.bodyBytes), header.visible);
        return noEntry;
      case kinds.touches:
        this.#applyTouches(bytes, body, header);
        return noEntry;
      case kinds.grants:
      case kinds.pins:
      case kinds.gone:
        this.#applyKeys(bytes, body, header);
        return noEntry;
      default:
        return noEntry; // a record kind of a later version
    }
  }

  #applyBlob(bytes: Buffer, body: number, header: Header, place: RecordPosition): number {
    const { table } = this;
    keyFromBytes(this.#key, header.fn, bytes, body);
    const sizeAt = body + paddedHashBytes(hashLength(header.fn));
    const sizeBytes = readUint64(bytes, sizeAt);
    if (!this.#counts(header.fn, header)) return this.#merge(header);
    // The janitor copies a file's record and leaves the file as it is.
    const isMoved = this.#isAt(table.find(this.#key, header.fn), header.movedFrom);
    const entry = this.#entryFor(header, header.fn, place);
    table.setFlag(entry, flags.zstd, header.isZstd);
    if (!isMoved) table.setFlag(entry, flags.durable | flags.suspect, false);
    if (header.kind === kinds.file) {
      const diskBytes = readUint64(bytes, sizeAt + 8);
      table.setFile(entry, sizeBytes, diskBytes);
      this.accounts.file(table.fileBytes(entry));
    } else {
      table.setPacked(entry, sizeBytes, recordBytes(header.bodyBytes));
    }
    table.setVisible(entry, table.visible(entry) | header.visible);
    this.#age(entry, header);
    this.accounts.live(place.segment, this.#recordBytes(entry));
    return entry;
  }

  /** The bytes are not needed from there, but the grants and the pin of the record still count. */
  #merge(header: Header): number {
    const entry = this.table.find(this.#key, header.fn);
    if (entry === noEntry) return noEntry;
    this.table.setVisible(entry, this.table.visible(entry) | header.visible);
    this.#age(entry, header);
    return noEntry;
  }

  /** A copy counts only as long as its original does. */
  #counts(fn: number, { movedFrom }: Header): boolean {
    if (!movedFrom) return true;
    const { table } = this;
    const entry = table.find(this.#key, fn);
    const isReadBack = this.#versions !== undefined;
    // Evicted meanwhile. During replay: the original's segment was removed after the copy was made.
    if (entry === noEntry) return isReadBack;
    if (this.#isAt(entry, movedFrom)) return true;
    // The checkpoint may name the first of several places, and the segments in between are gone.
    return isReadBack && !this.hasSegment(table.segment(entry));
  }

  #isAt(entry: number, place: RecordPosition | undefined): boolean {
    if (entry === noEntry || !place) return false;
    return this.table.segment(entry) === place.segment && this.table.offset(entry) === place.offset;
  }

  /** The entry under the current key, without its previous place: the last record counts. */
  #entryFor({ movedFrom }: Header, fn: number, { segment, offset }: RecordPosition): number {
    const { table } = this;
    const there = table.find(this.#key, fn);
    if (there !== noEntry) this.#uncount(there);
    const entry = there === noEntry ? table.add(this.#key, fn) : there;
    // A copy has the same bytes, so those in memory stay valid.
    if (!movedFrom || table.has(entry, flags.file)) table.setMemory(entry, 0);
    table.setPlace(entry, segment, offset);
    return entry;
  }

  #age(entry: number, { accessSec, keepSec }: Header): void {
    const { table } = this;
    table.setAccessSec(entry, Math.max(table.accessSec(entry), accessSec));
    table.setKeepSec(entry, Math.max(table.keepSec(entry), keepSec));
  }

  #applyNamed(bytes: Buffer, body: number, header: Header, place: RecordPosition): number {
    const { table } = this;
    wordsOfBytes(this.#key, bytes, body, keyWords);
    if (!this.#countsNamed(bytes, body, header)) return noEntry;
    const entry = this.#entryFor(header, namedFunction, place);
    table.setPacked(entry, header.bodyBytes, recordBytes(header.bodyBytes));
    table.setVisible(entry, header.visible);
    this.#age(entry, header);
    this.accounts.live(place.segment, recordBytes(header.bodyBytes));
    return entry;
  }

  #countsNamed(bytes: Buffer, body: number, header: Header): boolean {
    const versions = this.#versions;
    if (!versions) return this.#counts(namedFunction, header);
    const name = bytes.toString("latin1", body, body + 4 * keyWords);
    const version = readUint64(bytes, body + 4 * keyWords);
    if (version < (versions.get(name) ?? 0)) return false;
    versions.set(name, version);
    return true;
  }

  #applyUnnamed(bytes: Buffer, body: number, header: Header): number {
    wordsOfBytes(this.#key, bytes, body, keyWords);
    if (!this.#countsNamed(bytes, body, { ...header, movedFrom: undefined })) return noEntry;
    const entry = this.table.find(this.#key, namedFunction);
    if (entry !== noEntry) this.remove(entry);
    return noEntry;
  }

  #applyKeys(bytes: Buffer, body: number, header: Header): void {
    const isGrant = header.kind === kinds.grants;
    for (let at = body; at < body + header.bodyBytes; at += keyBytes) {
      const entry = this.#findKey(bytes, at);
      if (entry === noEntry) continue;
      if (header.kind === kinds.gone) this.remove(entry);
      else if (isGrant) this.grant(entry, header.visible);
      else this.table.setKeepSec(entry, Math.max(this.table.keepSec(entry), header.keepSec));
    }
  }

  #findKey(bytes: Buffer, at: number): number {
    wordsOfBytes(this.#key, bytes, at + 4, keyWords);
    return this.table.find(this.#key, bytes[at] ?? 0);
  }

  #applyTouches(bytes: Buffer, body: number, header: Header): void {
    for (let at = body; at + keyBytes <= body + header.bodyBytes; at += keyBytes) {
      const entry = this.#findKey(bytes, at);
      if (entry !== noEntry) this.#age(entry, header);
    }
  }

  /** Whether a complete record is about the entry. */
  isOf(entry: number, bytes: Buffer, { kind, fn }: Header): boolean {
    const { table } = this;
    const isNamed = table.fn(entry) === namedFunction;
    if (isNamed ? kind !== kinds.named : fn !== table.fn(entry) || (kind !== kinds.blob && kind !== kinds.file))
      return false;
    if (isNamed) wordsOfBytes(this.#key, bytes, headerBytes, keyWords);
    else keyFromBytes(this.#key, fn, bytes, headerBytes);
    for (let i = 0; i < keyWords; i += 1) if (table.keyWord(entry, i) !== this.#key[i]) return false;
    return true;
  }

  /** Writes a key in the form that records use. */
  writeKey(entry: number, target: Buffer, at: number): void {
    assert(this.table.isTaken(entry), "an entry that is there");
    target.writeUInt32LE(this.table.fn(entry), at);
    for (let i = 0; i < keyWords; i += 1) target.writeUInt32LE(this.table.keyWord(entry, i), at + 4 + 4 * i);
  }
}
