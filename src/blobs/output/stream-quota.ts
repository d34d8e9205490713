/**
 * How much live output a tenant may have: of streams that are being written, or were a little while ago. Counted here,
 * and added to what other nodes say that they count, which is some seconds old. A stream that goes beyond it ends with
 * a line that says so. What follows is acknowledged and dropped, so that no task fails for what it prints.
 */
import type { Clock } from "#base/clock.ts";
import { formatSize } from "#base/units.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";

export type StreamQuotaOptions = {
  readonly clock: Pick<Clock, "monotonicMs" | "wallMs">;
  readonly tenantBytesMax: number;
  /** Called once for each stream that was cut. */
  readonly onCut?: (key: StreamKey) => void;
  /** What the tenant has on other nodes, as far as is known; left out: nothing. */
  readonly elsewhere?: (tenant: string) => number;
};

type Live = { readonly tenant: string; bytes: number; atMs: number; isCut: boolean };

/** A stream without an append for so long is not counted: its writer may be dead. */
const liveMs = 600_000;
/** A stream that another node writes now must not be counted by both for long. */
const recentMs = 30_000;
const streamsMax = 100_000;

export type LimitedStreams = Streams & {
  /** Bytes by tenant, of streams that were written lately: others of them may go on at another node. */
  recent(): ReadonlyMap<string, number>;
};

export const withStreamQuota = (inner: Streams, options: StreamQuotaOptions): LimitedStreams => {
  const quota = new StreamQuota(inner, options);
  return {
    recent: () => quota.recent(),
    ...(inner.everyMs !== undefined && { everyMs: inner.everyMs }),
    append: (key, offset, bytes) => quota.append(key, offset, bytes),
    read: (key, offset, signal) => inner.read(key, offset, signal),
    state: (key) => inner.state(key),
    seal: (key) => inner.seal(key),
    async remove(key) {
      await inner.remove(key);
      quota.forget(key);
    },
  };
};

class StreamQuota {
  readonly #inner: Streams;
  readonly #options: StreamQuotaOptions;
  /** By name; those that were written last are at the end. */
  readonly #live = new Map<string, Live>();
  readonly #usedBytes = new Map<string, number>();

  constructor(inner: Streams, options: StreamQuotaOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  async append(key: StreamKey, offset: number, bytes: Uint8Array): Promise<void> {
    const live = this.#touched(key) ?? (await this.#begun(key, offset));
    if (live.isCut) return;
    const growth = Math.max(0, offset + bytes.length - live.bytes);
    if (this.#isTooMuch(key.tenant, growth)) {
      this.#forgetOld();
      if (this.#isTooMuch(key.tenant, growth)) return await this.#cut(key, live);
    }
    this.#count(live, growth);
    try {
      await this.#inner.append(key, offset, bytes);
    } catch (error) {
      this.#count(live, -growth);
      throw error;
    }
  }

  recent(): ReadonlyMap<string, number> {
    const fromMs = this.#options.clock.monotonicMs() - recentMs;
    const found = new Map<string, number>();
    for (const { tenant, bytes, atMs } of this.#live.values())
      if (atMs >= fromMs) found.set(tenant, (found.get(tenant) ?? 0) + bytes);
    return found;
  }

  #isTooMuch(tenant: string, growth: number): boolean {
    const { tenantBytesMax, elsewhere } = this.#options;
    const here = (this.#usedBytes.get(tenant) ?? 0) + growth;
    return here > tenantBytesMax || here + (elsewhere?.(tenant) ?? 0) > tenantBytesMax;
  }

  forget(key: StreamKey): void {
    const name = nameOf(key);
    const live = this.#live.get(name);
    if (!live) return;
    this.#live.delete(name);
    this.#count(live, -live.bytes);
  }

  #touched(key: StreamKey): Live | undefined {
    const name = nameOf(key);
    const live = this.#live.get(name);
    if (!live) return undefined;
    live.atMs = this.#options.clock.monotonicMs();
    this.#live.delete(name);
    this.#live.set(name, live);
    return live;
  }

  /** An earlier process, or another node, may have written the beginning. */
  async #begun(key: StreamKey, offset: number): Promise<Live> {
    const bytes = offset === 0 ? 0 : ((await this.#inner.state(key))?.sizeBytes ?? 0);
    const isCut = offset > bytes && (await this.#endsCut(key, bytes));
    const known = this.#touched(key);
    if (known) return known;
    const live: Live = { tenant: key.tenant, bytes: 0, atMs: this.#options.clock.monotonicMs(), isCut };
    this.#live.set(nameOf(key), live);
    this.#count(live, bytes);
    for (const [oldest, { tenant, bytes: more }] of this.#live) {
      if (this.#live.size <= streamsMax) break;
      this.#live.delete(oldest);
      this.#release(tenant, more);
    }
    return live;
  }

  #count(live: Live, more: number): void {
    live.bytes += more;
    this.#release(live.tenant, -more);
  }

  #release(tenant: string, bytes: number): void {
    const left = (this.#usedBytes.get(tenant) ?? 0) - bytes;
    if (left > 0) this.#usedBytes.set(tenant, left);
    else this.#usedBytes.delete(tenant);
  }

  #forgetOld(): void {
    const beforeMs = this.#options.clock.monotonicMs() - liveMs;
    for (const [name, { tenant, bytes, atMs }] of this.#live) {
      if (atMs >= beforeMs) return;
      this.#live.delete(name);
      this.#release(tenant, bytes);
    }
  }

  async #cut(key: StreamKey, live: Live): Promise<void> {
    const { clock, tenantBytesMax, onCut } = this.#options;
    const line = noticeOf(new Date(clock.wallMs()).toISOString(), tenantBytesMax);
    await this.#inner.append(key, live.bytes, Buffer.from(line));
    if (live.isCut) return;
    this.#count(live, line.length);
    live.isCut = true;
    onCut?.(key);
  }

  /** A writer that goes on after a restart does not know that its stream ends before what it sends next. */
  async #endsCut(key: StreamKey, sizeBytes: number): Promise<boolean> {
    const { tenantBytesMax } = this.#options;
    const end = noticeOf(new Date(0).toISOString(), tenantBytesMax);
    if (sizeBytes < end.length) return false;
    const enough = new AbortController();
    let tail = "";
    for await (const part of this.#inner.read(key, sizeBytes - end.length, enough.signal)) {
      tail += Buffer.from(part).toString();
      if (tail.length >= end.length) break;
    }
    return tail.endsWith(lastWords);
  }
}

const lastWords = "(cluster.tenantOutputMax)\n";

const textOf = (bytesMax: number): string =>
  `output beyond this is not kept: the tenant has ${formatSize(bytesMax)} of live output, its limit ${lastWords}`;

/** In the form of a line of a CI log, whose readers show it as a warning; people can read it as it is. */
const noticeOf = (at: string, bytesMax: number): string => `\n${at} * w ${textOf(bytesMax)}`;

const nameOf = ({ tenant, task, token, name }: StreamKey): string => JSON.stringify([tenant, task, token, name]);
