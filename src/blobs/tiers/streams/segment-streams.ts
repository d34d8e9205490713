/** Streams (B8, B9) as segments in a tier that all nodes reach. */
import type { Clock } from "#base/clock.ts";
import { digestText, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { Turns } from "#blobs/disk/turns.ts";
import { createHasher } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";
import { SegmentReader } from "./segment-reader.ts";
import { encodeSegment, segmentBytesMax, streamFolder, taskFolder, type Segments } from "./segments.ts";

export type SegmentStreamsPorts = {
  readonly segments: Segments;
  readonly clock: Clock;
  /** Where sealed streams of a tenant are stored. */
  readonly blobsOf: (tenant: string) => BlobStore;
};

/** A stream that this process writes. */
type Writing = { count: number; sizeBytes: number; sealed: Digest | undefined; checkedMs: number };

const checkMs = 5_000;
const pollMsMin = 100;
const pollMsMax = 1_000;
const writingMax = 10_000;
/** Every so many lookups without a new segment a reader asks whether the stream has ended. */
const pollsBeforeEnd = 4;

export const segmentStreams = (ports: SegmentStreamsPorts): Streams => {
  const streams = new SegmentStreams(ports);
  return {
    everyMs: ports.segments.everyMs,
    append: (key, offset, bytes) => streams.append(key, offset, bytes),
    read: (key, offset, signal) => streams.read(key, offset, signal),
    state: (key) => streams.state(key),
    seal: (key) => streams.seal(key),
    remove: (key) => streams.remove(key),
  };
};

class SegmentStreams {
  readonly #ports: SegmentStreamsPorts;
  readonly #segments: Segments;
  readonly #reader: SegmentReader;
  readonly #turns = new Turns();
  readonly #writing = new Map<string, Writing>();
  readonly #newest = new Map<string, number>();
  /** Wakes readers here of streams that are written here. */
  readonly #changed = new Map<string, PromiseWithResolvers<void>>();

  constructor(ports: SegmentStreamsPorts) {
    this.#ports = ports;
    this.#segments = ports.segments;
    this.#reader = new SegmentReader(ports.segments);
  }

  append(key: StreamKey, offset: number, bytes: Uint8Array): Promise<void> {
    const folder = streamFolder(key);
    return this.#turns.take(taskFolder(key), async () => {
      const stream = await this.#open(key, folder, "append to stream");
      const facts = { offset, sizeBytes: stream.sizeBytes };
      if (stream.sealed !== undefined) throw new Fault("stale", "append to stream", { ...facts, why: "it is sealed" });
      if (!(offset >= 0 && offset <= stream.sizeBytes))
        throw new Fault("invalid", "append to stream", { ...facts, why: "there is a gap" });
      const end = offset + bytes.length;
      while (stream.sizeBytes < end) {
        const piece = bytes.subarray(stream.sizeBytes - offset, stream.sizeBytes - offset + segmentBytesMax);
        await this.#put(folder, stream, Uint8Array.from(piece));
      }
      this.#wake(folder);
    });
  }

  /** A segment that is there already was written by us, in an attempt of which we did not hear, or on another node. */
  async #put(folder: string, stream: Writing, bytes: Uint8Array): Promise<void> {
    const { count: n, sizeBytes: from } = stream;
    const name = `${folder}/${n}`;
    const put = await this.#segments.put(name, encodeSegment({ from, bytes }));
    const there = put === "written" ? { n, from, bytes } : await this.#reader.segment(folder, n);
    if (there?.from !== from)
      throw new Fault("unavailable", "append to stream", { n, why: "it was removed meanwhile" });
    if (put === "written") this.#reader.keep(name, there);
    stream.count += 1;
    stream.sizeBytes += there.bytes.length;
  }

  /** Refuses an old token, and learns how far the stream is. */
  async #open(key: StreamKey, folder: string, doing: string): Promise<Writing> {
    const nowMs = this.#ports.clock.monotonicMs();
    const known = this.#writing.get(folder);
    const isFresh = known !== undefined && nowMs - known.checkedMs < checkMs;
    await this.#beNewest(key, doing, isFresh);
    if (known) {
      if (!isFresh) known.checkedMs = nowMs;
      return known;
    }
    const [end, sealed] = [await this.#reader.end(folder), await this.#sealed(folder)];
    const opened = { ...end, sealed, checkedMs: nowMs };
    this.#writing.set(folder, opened);
    dropOldest(this.#writing);
    return opened;
  }

  async #beNewest({ token, ...key }: StreamKey, doing: string, isFresh: boolean): Promise<void> {
    const folder = taskFolder(key);
    const name = `${folder}/newest`;
    let newest = this.#newest.get(folder) ?? 0;
    if (!isFresh || newest === 0) newest = Math.max(newest, Number(textOf(await this.#segments.get(name)) ?? 0));
    if (token > newest) await this.#segments.replace(name, Buffer.from(String(token)));
    this.#newest.delete(folder);
    this.#newest.set(folder, Math.max(token, newest));
    dropOldest(this.#newest);
    if (token < newest) throw new Fault("stale", doing, { token, newest });
  }

  async #sealed(folder: string): Promise<Digest | undefined> {
    return textOf(await this.#segments.get(`${folder}/sealed`));
  }

  async *read(key: StreamKey, offset: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const folder = streamFolder(key);
    let at = offset;
    let n = await this.#reader.find(folder, offset);
    for (let misses = 0; ;) {
      // Before the lookup: what comes in between is found by it.
      const changed = this.#waiter(folder);
      const found = await this.#reader.segment(folder, n);
      if (found) {
        misses = 0;
        n += 1;
        const rest = found.bytes.subarray(Math.max(0, at - found.from));
        at += rest.length;
        if (rest.length > 0) yield rest;
        if (signal.aborted) return;
        continue;
      }
      if (signal.aborted || (misses % pollsBeforeEnd === 0 && (await this.#isOver(folder, n, at, misses === 0))))
        return;
      const woken = await this.#wait(changed, Math.min(pollMsMax, pollMsMin * 1.5 ** misses), signal);
      misses = woken ? 0 : misses + 1;
    }
  }

  /** Sealed with no segment after these; or removed. */
  async #isOver(folder: string, n: number, at: number, isNew: boolean): Promise<boolean> {
    const own = this.#writing.get(folder);
    if (own?.sealed !== undefined) return n >= own.count;
    // Written here: an append wakes this reader. Another node may have continued it, so the tier is asked later.
    if (own && isNew) return false;
    if ((await this.#sealed(folder)) !== undefined) return (await this.#reader.segment(folder, n)) === undefined;
    if (n === 0) return at > 0; // what was read before is gone
    return (await this.#segments.get(`${folder}/${n - 1}`)) === undefined;
  }

  #waiter(folder: string): Promise<void> {
    let changed = this.#changed.get(folder);
    if (!changed) this.#changed.set(folder, (changed = Promise.withResolvers()));
    dropOldest(this.#changed);
    return changed.promise;
  }

  #wake(folder: string): void {
    const changed = this.#changed.get(folder);
    this.#changed.delete(folder);
    changed?.resolve();
  }

  /** Another node may write it, and no call says so: the reader looks again soon. */
  async #wait(changed: Promise<void>, ms: number, signal: AbortSignal): Promise<boolean> {
    const over = new AbortController();
    const sleep = this.#ports.clock.sleep(ms, AbortSignal.any([signal, over.signal])).catch(() => {});
    const woken = await Promise.race([changed.then(() => true), sleep.then(() => false)]);
    over.abort();
    return woken;
  }

  async state(key: StreamKey): Promise<{ readonly sizeBytes: number; readonly sealed?: Digest } | undefined> {
    const folder = streamFolder(key);
    const { sizeBytes } = this.#writing.get(folder) ?? (await this.#reader.end(folder));
    const sealed = await this.#sealed(folder);
    if (sizeBytes === 0 && sealed === undefined) return undefined;
    return { sizeBytes, ...(sealed !== undefined && { sealed }) };
  }

  seal(key: StreamKey): Promise<Digest> {
    const folder = streamFolder(key);
    return this.#turns.take(taskFolder(key), async () => {
      const before = await this.#sealed(folder);
      if (before !== undefined) return before;
      const stream = await this.#open(key, folder, "seal stream");
      const hasher = createHasher("sha256");
      for await (const piece of this.#all(folder, stream)) hasher.update(piece);
      const digest = digestText("sha256", hasher.hex(), stream.sizeBytes);
      await this.#ports.blobsOf(key.tenant).write(digest, this.#all(folder, stream));
      await this.#segments.replace(`${folder}/sealed`, Buffer.from(digest));
      stream.sealed = digest;
      this.#wake(folder);
      return digest;
    });
  }

  async *#all(folder: string, { count }: Writing): AsyncGenerator<Uint8Array> {
    for (let n = 0; n < count; n += 1) {
      const found = await this.#reader.segment(folder, n);
      if (!found) throw new Fault("corrupt", "seal stream", { n, why: "a segment is missing" });
      yield found.bytes;
    }
  }

  /** From the first on, so that a reader that finds none at the end knows why. */
  remove(key: StreamKey): Promise<void> {
    const folder = streamFolder(key);
    return this.#turns.take(taskFolder(key), async () => {
      const { count } = this.#writing.get(folder) ?? (await this.#reader.end(folder));
      this.#writing.delete(folder);
      for (let n = 0; n < count; n += 1) await this.#segments.remove(`${folder}/${n}`);
      this.#reader.forget(folder, count);
      await this.#segments.remove(`${folder}/sealed`);
      await this.#forget(key);
      this.#wake(folder);
    });
  }

  /** With the last stream of a task here goes what is known of its tokens. */
  async #forget(key: StreamKey): Promise<void> {
    const folder = taskFolder(key);
    if (this.#newest.get(folder) !== key.token) return;
    for (const other of this.#writing.keys()) if (other.startsWith(folder)) return;
    this.#newest.delete(folder);
    await this.#segments.remove(`${folder}/newest`);
  }
}

/** Readers that were dropped look again by themselves. */
function dropOldest(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) {
    if (map.size <= writingMax) return;
    map.delete(oldest);
  }
}

const textOf = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString("utf8");
