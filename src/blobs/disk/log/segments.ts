/** The files of the packed log: their sizes, their live bytes, and a bounded set of open handles. */
import { closeSync, fstatSync, openSync, readdirSync, rmSync, statSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { assert, must } from "#base/assert.ts";

export const segmentHeaderBytes = 16;

export type Segment = {
  readonly number: number;
  /** Bytes written so far. */
  sizeBytes: number;
  /** Bytes of records that are still needed. */
  liveBytes: number;
  /** Whether the file's name survives a power failure. */
  isNameSynced: boolean;
  /** The bytes up to here survive a power failure. */
  syncedBytes: number;
  /** Set after a failed sync: a later success would not prove that the bytes are durable. */
  cannotSync: boolean;
};

type Handle = { readonly fd: number; users: number };

const handlesMax = 256;
const sizedAtOnce = 16;

export class Segments {
  readonly folder: string;
  readonly #segments = new Map<number, Segment>();
  #last: Segment | undefined;
  /** Open files, most recently used last. */
  readonly #handles = new Map<number, Handle>();
  /** Handles of removed segments that are still being read, by file descriptor. */
  readonly #doomed = new Map<number, Handle>();
  #sized = 0;

  constructor(folder: string) {
    this.folder = folder;
    for (const name of readdirSync(folder)) {
      const match = /^(\d{8})\.log$/.exec(name);
      if (!match) continue;
      const { size: sizeBytes } = statSync(join(folder, name));
      this.add(Number(match[1]), sizeBytes);
    }
  }

  path(number: number): string {
    return join(this.folder, `${String(number).padStart(8, "0")}.log`);
  }

  get numbers(): readonly number[] {
    return [...this.#segments.keys()].toSorted((a, b) => a - b);
  }

  all(): IterableIterator<Segment> {
    return this.#segments.values();
  }

  /** Cached: callers often ask for the same segment again. */
  get(number: number): Segment | undefined {
    if (this.#last?.number !== number) this.#last = this.#segments.get(number);
    return this.#last;
  }

  add(number: number, sizeBytes: number): Segment {
    const segment: Segment = {
      number,
      sizeBytes,
      liveBytes: 0,
      isNameSynced: false,
      syncedBytes: 0,
      cannotSync: false,
    };
    this.#segments.set(number, segment);
    this.#last = segment;
    return segment;
  }

  changeLive(number: number, bytes: number): void {
    const segment = this.get(number);
    if (segment) segment.liveBytes += bytes;
  }

  /** Creates an empty file. */
  create(number: number): Segment {
    const fd = openSync(this.path(number), "wx+", 0o600);
    this.#handles.set(number, { fd, users: 0 });
    return this.add(number, 0);
  }

  /** Must be released; until then the file stays readable, even if it is removed. */
  acquire(number: number): number {
    let handle = this.#handles.get(number);
    if (handle) this.#handles.delete(number);
    else handle = { fd: openSync(this.path(number), "r+"), users: 0 };
    handle.users += 1;
    this.#handles.set(number, handle);
    this.#closeSome();
    return handle.fd;
  }

  release(number: number, fd: number): void {
    const handle = this.#handles.get(number);
    if (handle?.fd === fd) {
      handle.users -= 1;
      return;
    }
    const doomed = must(this.#doomed.get(fd), "a handle that was acquired");
    doomed.users -= 1;
    if (doomed.users > 0) return;
    this.#doomed.delete(fd);
    closeSync(fd);
  }

  /**
   * False if its file was removed or cut from outside. An open file can be used without its name, and is gone
   * when it is closed.
   */
  isWhole(number: number): boolean {
    const handle = this.#handles.get(number);
    const stats = handle ? fstatSync(handle.fd) : statSync(this.path(number), { throwIfNoEntry: false });
    return stats !== undefined && stats.nlink > 0 && stats.size >= (this.#segments.get(number)?.sizeBytes ?? 0);
  }

  /** Segments that are not whole. All are looked for by name, and some of them, in turns, by size. */
  async damaged(): Promise<readonly number[]> {
    const names = new Set(await readdir(this.folder));
    const { numbers } = this;
    this.#sized = this.#sized >= numbers.length ? 0 : this.#sized + sizedAtOnce;
    return numbers.filter((number, i) => {
      const isTurn = i >= this.#sized - sizedAtOnce && i < this.#sized;
      return (isTurn || !names.has(basename(this.path(number)))) && !this.isWhole(number);
    });
  }

  /** Forgets the segment at once, then deletes the file, which may take a while. */
  async remove(number: number): Promise<void> {
    this.#forget(number);
    await rm(this.path(number), { force: true });
  }

  /** Removes a segment without records. */
  removeEmpty(number: number): void {
    this.#forget(number);
    rmSync(this.path(number), { force: true });
  }

  #forget(number: number): void {
    const segment = this.#segments.get(number);
    assert(segment, "a segment that is there");
    this.#segments.delete(number);
    this.#last = undefined;
    const handle = this.#handles.get(number);
    this.#handles.delete(number);
    if (handle && handle.users > 0) this.#doomed.set(handle.fd, handle);
    else if (handle) closeSync(handle.fd);
  }

  close(): void {
    for (const { fd } of [...this.#handles.values(), ...this.#doomed.values()]) closeSync(fd);
    this.#handles.clear();
    this.#doomed.clear();
  }

  #closeSome(): void {
    if (this.#handles.size <= handlesMax) return;
    for (const [number, { fd, users }] of this.#handles) {
      if (users > 0) continue;
      this.#handles.delete(number);
      closeSync(fd);
      if (this.#handles.size <= handlesMax) return;
    }
  }
}
