/** What all parts of a disk store work on together. */
import { statfsSync } from "node:fs";
import { must } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import type { DigestParts } from "#base/digest.ts";
import { Fault, isFault, type FaultFacts } from "#base/fault.ts";
import { DurableNames } from "#blobs/durable-names.ts";
import { BlobFiles, fileName } from "./blob-files.ts";
import { asDiskFault, folderIsLost, noRoomBecause } from "./disk-fault.ts";
import { HashThread } from "./upload/file-hashing.ts";
import { type Holdings, keyBytes, type Place } from "./holdings.ts";
import { InlineGate } from "./upload/inline-gate.ts";
import { comingKeys, keyText } from "./upload/coming.ts";
import { functionNumber, keyFromHex, keyWords, wordsOfBytes, type Key } from "./table/key.ts";
import { PackedLog, type Appending, type Written } from "./log/packed-log.ts";
import { Pace } from "./janitor/pace.ts";
import { RecordReader, type ReadRecord } from "./log/read-record.ts";
import { headerBytes, kinds, peekHeader, recordBytes } from "./log/record.ts";
import type { Recovered } from "./log/recovery.ts";
import type { Room } from "./janitor/room.ts";
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
  readonly room: Room;
  readonly recovered: Recovered;
};

/** Times in the log are seconds; what is to be kept for ever, until the last one there is. */
const secondsMax = 2 ** 32 - 1;
/** How exactly times of access are known, at most: touching a blob again within it costs nothing. */
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
  readonly room: Room;
  readonly gate: InlineGate;
  readonly slabs: Slabs;
  readonly log: PackedLog;
  readonly reader: RecordReader;
  readonly files: BlobFiles;
  readonly names: DurableNames;
  readonly hashing = new HashThread();
  readonly spare: Spare;
  readonly pace = new Pace();
  readonly nameTurns = new Turns();
  /** Makes room for so much, if it can; the janitor's. */
  makeRoom: (bytes: number) => Promise<boolean> = () => Promise.resolve(false);
  /** The same for one more entry of the table. */
  makeEntries: () => Promise<boolean> = () => Promise.resolve(false);
  /** What is in this segment and later ones, the last checkpoint may not know. */
  checkpointSegment: number;
  /** Taken for uploads that have not come yet. */
  unwrittenBytes: () => number = () => 0;
  /** Told of entries whose use should be written down. */
  onTouched: (entry: number) => void = () => {};
  readonly #key: Key = new Uint32Array(keyWords);
  readonly #tenants = new Map<string, Promise<number>>();
  readonly #epochMs: number;
  readonly #accessCoarseSec: number;
  #roughSec: number;

  constructor(parts: CoreParts, filesFolder: string) {
    const { root, options, clock, holdings, segments, room, recovered } = parts;
    this.root = root;
    this.options = options;
    this.clock = clock;
    this.holdings = holdings;
    this.segments = segments;
    this.room = room;
    // A wall clock that was set back must not make anything older than it is, nor one that jumps let pins run out.
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
      { segments, slabs, room, gate, segmentBytes, syncs, isSynced, onLost, onWritten },
      recovered,
    );
  }

  /** One record; says how long it is. */
  #applyWritten(slab: Slab, at: number, place: Place): number {
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

  /** The blob's entry, whoever may see it. */
  find({ fn, hash, sizeBytes }: DigestParts): number {
    const number = functionNumber(fn);
    keyFromHex(this.#key, number, hash);
    const entry = this.holdings.table.find(this.#key, number);
    return entry !== noEntry && this.holdings.table.sizeOf(entry) === sizeBytes ? entry : noEntry;
  }

  /** The same, for a tenant; counts as a use. */
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

  /** By the time of the last look at the clock: for who asks for thousands at once. */
  touchRoughly(entry: number): void {
    if (this.holdings.table.touch(entry, this.#roughSec, this.#accessCoarseSec)) this.onTouched(entry);
  }

  /** What was used since may have been promised to somebody: times of access are known only roughly. */
  promisedSinceSec(): number {
    return this.nowSec() - Math.ceil(this.options.promisedMs / 1_000) - this.#accessCoarseSec;
  }

  /** For `touchRoughly`. */
  lookAtClock(): void {
    this.#roughSec = this.nowSec();
  }

  /** The tenant's number, given out and written down at the first need. */
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
    await Promise.allSettled(before); // one after the other, for each takes the next number
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

  /** The table is in memory, so it has a limit of its own: tiny blobs would fill that before the disk. */
  async #withEntry(appending: Appending): Promise<void> {
    if (await this.makeEntries()) return await this.#append(appending);
    throw this.noRoom("write blob", { entriesMax: this.options.entriesMax });
  }

  #append(appending: Appending): Promise<void> {
    return this.log.append(appending).catch((error: unknown) => {
      return this.#onceMore(error, appending.bodyBytes + headerBytes, () => this.log.append(appending));
    });
  }

  /** Waits for the janitor when there is no room, in the store or on the disk, and tries once more. */
  async withRoom<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      return await this.#onceMore(error, bytes, work);
    }
  }

  /** While a blob is kept twice, its second copy has room of its own. */
  async borrowRoom(bytes: number, work: () => Promise<void>): Promise<void> {
    const { room } = this;
    if (!room.take(bytes) && !((await this.makeRoom(bytes)) && room.take(bytes)))
      throw this.noRoom("write blob", { neededBytes: bytes });
    try {
      await work();
    } finally {
      room.give(bytes);
    }
  }

  async #onceMore<T>(error: unknown, bytes: number, work: () => Promise<T>): Promise<T> {
    const fault = asDiskFault(error, "write");
    if (fault.code !== "exhausted") throw fault;
    if (await this.makeRoom(bytes)) return await work();
    throw fault.facts["errno"] === undefined ? this.noRoom(fault.doing, { neededBytes: bytes }) : fault;
  }

  noRoom(doing: string, facts: FaultFacts): Fault {
    return noRoomBecause(doing, this.options.promisedMs, { ...facts, usedBytes: this.room.usedBytes });
  }

  /** The limit is what was configured, or what the disk has if that is less: all but a twentieth of what is free. */
  measureDisk(): void {
    const { bavail, bsize } = statfsSync(this.root);
    const { room, options } = this;
    const writtenBytes = room.usedBytes - this.unwrittenBytes();
    room.resize(Math.floor(Math.min(options.sizeBytesMax, writtenBytes + bavail * bsize * freeShare)));
  }

  /** One record, or as many as it takes, that name these entries. */
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

  recordOf(entry: number): Promise<ReadRecord> {
    const { table } = this.holdings;
    const [segment, offset] = [table.segment(entry), table.offset(entry)];
    return this.reader.read({ segment, offset, lengthBytes: table.recordBytes(entry) });
  }

  recordNow(entry: number): ReadRecord | undefined {
    const { table } = this.holdings;
    const [segment, offset] = [table.segment(entry), table.offset(entry)];
    return this.reader.readNow({ segment, offset, lengthBytes: table.recordBytes(entry) });
  }

  /**
   * Takes the entries out at once, so that nobody is told that they are there, and says so in the log; only when that
   * is written do their files go, for after a crash it is the log that is believed. What is just being written anew
   * stays: the news would come behind it in the log, and it is there for whoever brings it (B4).
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
      // A disk without room for this one record could never get any: that is what the spare room is for.
      if (!isFault(error, "exhausted")) throw error;
      this.spare.useUp();
      await this.appendGone(this.absentKeys(keys));
    }
    await Promise.all(names.map((name) => this.files.remove(name, () => this.#has(name))));
  }

  /** Of these keys, as records have them, those of what is neither there nor coming. */
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

  /** Wrong bytes were found: the copy goes, so that a right one can take its place. */
  async dropDamaged(entry: number, facts: { readonly digest: string }): Promise<never> {
    this.options.report("a damaged blob was found and let go", { digest: facts.digest });
    await this.drop([entry]).catch(() => {});
    throw new Fault("not-found", "read blob", { ...facts, why: "its copy was damaged" });
  }
}
