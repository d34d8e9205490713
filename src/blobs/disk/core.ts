/** The shared state of all parts of a disk store. */
import { statfsSync } from "node:fs";
import { must } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import type { DigestParts } from "#base/digest.ts";
import { Fault, isFault, type FaultFacts } from "#base/fault.ts";
import { DurableNames } from "#blobs/durable-names.ts";
import { BlobFiles, fileName } from "./blob-files.ts";
import { asDiskFault, folderIsLost, noSpaceBecause } from "./disk-fault.ts";
import { FileChecks } from "./check/file-checks.ts";
import { HashThread } from "./upload/file-hashing.ts";
import { type Holdings, keyBytes } from "./holdings.ts";
import { InlineGate } from "./upload/inline-gate.ts";
import { comingKeys, keyText } from "./upload/coming.ts";
import { functionNumber, keyFromHex, keyWords, wordsOfBytes, type Key } from "./table/key.ts";
import { PackedLog, type Appending, type Written } from "./log/packed-log.ts";
import { Pace } from "./janitor/pace.ts";
import { RecordReader, type ReadRecord, type RecordSpan } from "./log/read-record.ts";
import { headerBytes, kinds, peekHeader, recordBytes, type RecordPosition } from "./log/record.ts";
import type { Recovered } from "./log/recovery.ts";
import type { SpaceBudget } from "./janitor/space-budget.ts";
import type { Segments } from "./log/segments.ts";
import { Slabs, type Slab } from "./log/slabs.ts";
import type { DiskOptions } from "./options.ts";
import { Turns } from "./turns.ts";
import { Spare } from "./log/spare.ts";
import { flags, noEntry } from "./table/table.ts";

export type CoreParts = {
  readonly root: string;
  readonly options: DiskOptions;
  readonly clock: Clock;
  readonly holdings: Holdings;
  readonly segments: Segments;
  readonly budget: SpaceBudget;
  readonly recovered: Recovered;
};

/** The log stores times as seconds in 32 bits; the largest one means forever. */
const secondsMax = 2 ** 32 - 1;
/** The precision of access times: using a blob again within this time writes nothing. */
const accessCoarseSecMax = 60;
const freeShare = 0.95;
const keysPerRecordMax = 1_500;

const addsEntry = ({ header: { kind } }: Appending): boolean =>
  kind === kinds.blob || kind === kinds.file || kind === kinds.named;

export class Core {
  readonly root: string;
  readonly options: DiskOptions;
  readonly clock: Clock;
  readonly holdings: Holdings;
  readonly segments: Segments;
  readonly budget: SpaceBudget;
  readonly gate: InlineGate;
  readonly slabs: Slabs;
  readonly log: PackedLog;
  readonly reader: RecordReader;
  readonly files: BlobFiles;
  readonly names: DurableNames;
  readonly hashing = new HashThread();
  readonly checks: FileChecks = new FileChecks(this);
  readonly spare: Spare;
  readonly pace = new Pace();
  readonly nameTurns = new Turns();
  /** Frees so many bytes if possible; set by the janitor. */
  makeSpace: (bytes: number) => Promise<boolean> = () => Promise.resolve(false);
  /** Frees one entry of the table if possible; set by the janitor. */
  makeEntries: () => Promise<boolean> = () => Promise.resolve(false);
  /** The last checkpoint may not contain records of this and later segments. */
  checkpointSegment: number;
  /** Bytes reserved for uploads that have not arrived yet. */
  unwrittenBytes: () => number = () => 0;
  /** Found and dropped since the process started. */
  damagedBlobs = 0;
  /** Called for entries whose use should be recorded. */
  onTouched: (entry: number) => void = () => {};
  readonly #key: Key = new Uint32Array(keyWords);
  readonly #tenants = new Map<string, Promise<number>>();
  readonly #epochMs: number;
  readonly #accessCoarseSec: number;
  #roughSec: number;

  constructor(parts: CoreParts, filesFolder: string) {
    const { root, options, clock, holdings, segments, budget, recovered } = parts;
    this.root = root;
    this.options = options;
    this.clock = clock;
    this.holdings = holdings;
    this.segments = segments;
    this.budget = budget;
    // A wall clock that is set back must not make blobs look older, and one that jumps must not end pins early.
    this.#epochMs = Math.max(clock.wallMs(), holdings.lastSec * 1_000) - clock.monotonicMs();
    this.#roughSec = this.nowSec();
    this.#accessCoarseSec = Math.min(accessCoarseSecMax, Math.ceil(options.promisedMs / 60_000));
    this.checkpointSegment = recovered.checkpointSegment;
    this.gate = new InlineGate(() => clock.monotonicMs());
    this.slabs = new Slabs(holdings.table, options.memoryBytesMax);
    this.reader = new RecordReader(segments, this.gate);
    this.names = new DurableNames(root, options.syncs);
    this.files = new BlobFiles(filesFolder, this.names, options.syncs);
    this.spare = new Spare(root, Math.min(options.segmentBytes / 4, options.sizeBytesMax / 64));
    const onWritten = ({ slab, at, lengthBytes, segment, offset }: Written): void => {
      for (let from = at; from < at + lengthBytes;)
        from += this.#applyWritten(slab, from, { segment, offset: offset + from - at });
    };
    const { gate, slabs } = this;
    const { segmentBytes, syncs } = options;
    const isSynced = options.sync === "synced";
    const onLost = (): void => {
      options.report("writes are refused", folderIsLost().facts);
      options.onLost();
    };
    this.measureDisk();
    this.log = new PackedLog(
      { segments, slabs, budget, gate, segmentBytes, syncs, isSynced, onLost, onWritten },
      recovered,
    );
  }

  /** Applies one record; returns its length. */
  #applyWritten(slab: Slab, at: number, place: RecordPosition): number {
    const { holdings } = this;
    const header = must(peekHeader(slab.buffer, at), "a record that was put together here");
    const entry = holdings.apply(slab.buffer, at, header, place);
    if (entry !== noEntry && header.kind !== kinds.file && !header.isZstd) {
      const size = header.kind === kinds.blob ? holdings.table.sizeOf(entry) : header.bodyBytes;
      this.slabs.place(entry, slab, at + headerBytes + header.bodyBytes - size);
    }
    return recordBytes(header.bodyBytes);
  }

  nowSec(): number {
    return Math.floor((this.#epochMs + this.clock.monotonicMs()) / 1_000);
  }

  untilSec(forMs: number): number {
    const seconds = Math.ceil((this.#epochMs + this.clock.monotonicMs() + forMs) / 1_000);
    return seconds < secondsMax ? seconds : secondsMax;
  }

  /** The blob's entry, regardless of tenants. */
  find({ fn, hash, sizeBytes }: DigestParts): number {
    const number = functionNumber(fn);
    keyFromHex(this.#key, number, hash);
    const entry = this.holdings.table.find(this.#key, number);
    return entry !== noEntry && this.holdings.table.sizeOf(entry) === sizeBytes ? entry : noEntry;
  }

  /** The blob's entry if the tenant may see it; counts as a use. */
  findFor(parts: DigestParts, tenant: number | undefined): number {
    if (tenant === undefined) return noEntry;
    const entry = this.find(parts);
    if (entry === noEntry || !this.holdings.maySee(entry, tenant)) return noEntry;
    this.touch(entry);
    return entry;
  }

  touch(entry: number): void {
    this.#roughSec = this.nowSec();
    this.touchRoughly(entry);
  }

  /** Uses the time of the last `lookAtClock`: for callers that look up thousands at once. */
  touchRoughly(entry: number): void {
    if (this.holdings.table.touch(entry, this.#roughSec, this.#accessCoarseSec)) this.onTouched(entry);
  }

  /** Blobs used since this time may have been promised: access times are imprecise. */
  promisedSinceSec(): number {
    return this.nowSec() - Math.ceil(this.options.promisedMs / 1_000) - this.#accessCoarseSec;
  }

  /** For `touchRoughly`. */
  lookAtClock(): void {
    this.#roughSec = this.nowSec();
  }

  /** The tenant's number, assigned and recorded at first use. */
  tenantNumber(name: string): number | Promise<number> {
    const known = this.holdings.tenantNumber(name);
    if (known !== undefined) return known;
    let coming = this.#tenants.get(name);
    if (!coming) {
      coming = this.#nameTenant(name).finally(() => this.#tenants.delete(name));
      this.#tenants.set(name, coming);
    }
    return coming;
  }

  async #nameTenant(name: string): Promise<number> {
    const before = [...this.#tenants.values()];
    await Promise.allSettled(before); // one after another, because each takes the next number
    const number = this.holdings.tenants.size + 1;
    const body = Buffer.from(name);
    await this.append({
      header: { kind: kinds.tenant, visible: number },
      bodyBytes: body.length,
      fill: (target, at) => target.set(body, at),
    });
    return number;
  }

  append(appending: Appending): Promise<void> {
    if (this.holdings.table.count >= this.options.entriesMax && addsEntry(appending)) return this.#withEntry(appending);
    return this.#append(appending);
  }

  /** The table is in memory and has its own limit: many tiny blobs would reach that before the disk's. */
  async #withEntry(appending: Appending): Promise<void> {
    if (await this.makeEntries()) return await this.#append(appending);
    throw this.noSpace("write blob", { entriesMax: this.options.entriesMax });
  }

  #append(appending: Appending): Promise<void> {
    return this.log.append(appending).catch((error: unknown) => {
      return this.#onceMore(error, appending.bodyBytes + headerBytes, () => this.log.append(appending));
    });
  }

  /** If there is no space, in the store or on the disk, lets the janitor run and tries once more. */
  async withSpace<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      return await this.#onceMore(error, bytes, work);
    }
  }

  /** Reserves space for a second copy of a blob while both exist. */
  async borrowSpace(bytes: number, work: () => Promise<void>): Promise<void> {
    const { budget } = this;
    if (!budget.take(bytes) && !((await this.makeSpace(bytes)) && budget.take(bytes)))
      throw this.noSpace("write blob", { neededBytes: bytes });
    try {
      await work();
    } finally {
      budget.give(bytes);
    }
  }

  async #onceMore<T>(error: unknown, bytes: number, work: () => Promise<T>): Promise<T> {
    const fault = asDiskFault(error, "write");
    if (fault.code !== "exhausted") throw fault;
    if (await this.makeSpace(bytes)) return await work();
    throw fault.facts["errno"] === undefined ? this.noSpace(fault.doing, { neededBytes: bytes }) : fault;
  }

  noSpace(doing: string, facts: FaultFacts): Fault {
    return noSpaceBecause(doing, this.options.promisedMs, { ...facts, usedBytes: this.budget.usedBytes });
  }

  /** The limit is the configured one, or less on a smaller disk: 95 % of what is free. */
  measureDisk(): void {
    const { bavail, bsize } = statfsSync(this.root);
    const { budget, options } = this;
    const writtenBytes = budget.usedBytes - this.unwrittenBytes();
    budget.resize(Math.floor(Math.min(options.sizeBytesMax, writtenBytes + bavail * bsize * freeShare)));
  }

  /** Appends one or more records that name these entries. */
  async appendKeys(header: Appending["header"], entries: readonly number[], isOwn = true): Promise<void> {
    await this.#appendKeys(header, this.keysOf(entries), isOwn);
  }

  async #appendKeys(header: Appending["header"], keys: Buffer, isOwn: boolean): Promise<void> {
    const written: Promise<void>[] = [];
    const step = keysPerRecordMax * keyBytes;
    for (let from = 0; from < keys.length; from += step) {
      const some = keys.subarray(from, from + step);
      const fill = (target: Buffer, at: number): void => target.set(some, at);
      written.push(this.log.append({ header, bodyBytes: some.length, fill, isOwn }));
    }
    await Promise.all(written);
  }

  async appendGone(keys: Buffer): Promise<void> {
    await this.#appendKeys({ kind: kinds.gone }, keys, true);
  }

  keysOf(entries: readonly number[]): Buffer {
    const keys = Buffer.allocUnsafe(entries.length * keyBytes);
    entries.forEach((entry, i) => this.holdings.writeKey(entry, keys, i * keyBytes));
    return keys;
  }

  async recordOf(entry: number): Promise<ReadRecord> {
    const span = this.#spanOf(entry);
    return this.#ofEntry(entry, span, await this.reader.read(span));
  }

  recordNow(entry: number): ReadRecord | undefined {
    const span = this.#spanOf(entry);
    const found = this.reader.readNow(span);
    return found && this.#ofEntry(entry, span, found);
  }

  #spanOf(entry: number): RecordSpan {
    const { table } = this.holdings;
    return { segment: table.segment(entry), offset: table.offset(entry), lengthBytes: table.recordBytes(entry) };
  }

  /** A record may be whole and still not the entry's own, for example after a segment was replaced. */
  #ofEntry(entry: number, span: RecordSpan, record: ReadRecord): ReadRecord {
    if (this.#isTheSame(entry, span) && !this.holdings.isOf(entry, record.bytes, record.header))
      throw new Fault("corrupt", "read log", { segment: span.segment, offset: span.offset, why: "another record" });
    return record;
  }

  /** False if it was moved or removed while its record was read; then the caller finds that out. */
  #isTheSame(entry: number, { segment, offset }: RecordSpan): boolean {
    const { table } = this.holdings;
    return table.isTaken(entry) && table.segment(entry) === segment && table.offset(entry) === offset;
  }

  /**
   * Removes the entries at once, so that no caller is told that they are there, and appends a record of that. Files are
   * deleted only when the record is written, because after a crash the log decides. A blob that is being written again
   * stays: the record would come after it in the log, and its writer is told that it is there (B4).
   */
  async drop(unwanted: readonly number[]): Promise<void> {
    const { holdings } = this;
    const { table } = holdings;
    const coming = comingKeys(this.log);
    const entries =
      coming.size === 0
        ? unwanted
        : unwanted.filter((entry) => !coming.has(keyText(table.fn(entry), table.key(entry))));
    if (entries.length === 0) return;
    const files = entries.filter((entry) => table.has(entry, flags.file));
    const names = files.map((entry) => fileName(table.fn(entry), table.key(entry).slice()));
    const keys = this.keysOf(entries);
    for (const entry of entries) holdings.remove(entry);
    try {
      await this.appendGone(keys);
    } catch (error) {
      // A full disk without space for this record could never free any: the spare space is for that.
      if (!isFault(error, "exhausted")) throw error;
      this.spare.useUp();
      await this.appendGone(this.absentKeys(keys));
    }
    await Promise.all(names.map((name) => this.files.remove(name, () => this.#has(name))));
  }

  /** The keys of those that are neither there nor being written. */
  absentKeys(keys: Buffer): Buffer {
    const coming = comingKeys(this.log);
    const absent: Buffer[] = [];
    const key = new Uint32Array(keyWords);
    for (let at = 0; at < keys.length; at += keyBytes) {
      const fn = keys[at] ?? 0;
      wordsOfBytes(key, keys, at + 4, keyWords);
      const isAbsent = this.holdings.table.find(key, fn) === noEntry && !coming.has(keyText(fn, key));
      if (isAbsent) absent.push(keys.subarray(at, at + keyBytes));
    }
    return Buffer.concat(absent);
  }

  #has({ fn, hex }: { readonly fn: number; readonly hex: string }): boolean {
    const key = new Uint32Array(keyWords);
    keyFromHex(key, 0, hex);
    return this.holdings.table.find(key, fn) !== noEntry;
  }

  /** Wrong bytes were found: drop the copy, so that a correct one can be written. */
  async dropCopy(entry: number, digest: string): Promise<void> {
    this.damagedBlobs += 1;
    this.options.report("a damaged blob was found and dropped", { digest });
    await this.drop([entry]).catch(() => {});
  }

  /** The same, for a reader: it is not there. */
  async dropDamaged(entry: number, { digest }: { readonly digest: string }): Promise<never> {
    await this.dropCopy(entry, digest);
    throw new Fault("not-found", "read blob", { digest, why: "its copy was damaged" });
  }
}
