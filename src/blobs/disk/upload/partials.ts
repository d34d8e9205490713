/**
 * Unfinished uploads: one file each, whose space is reserved as bytes arrive. The file's name contains its owner, so
 * that limits per tenant and caller hold after a restart.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { digestText } from "#base/digest.ts";
import { partsOf } from "#blobs/hashing.ts";
import { beyondLimit, isWithin, UploadLedger, type Excess, type UploadOwner } from "#blobs/upload-limits.ts";
import type { UploadKey } from "#blobs/uploads.ts";
import type { Core } from "#blobs/disk/core.ts";
import { retryAfterMs } from "#blobs/disk/disk-fault.ts";

export type Partial = {
  readonly name: string;
  readonly path: string;
  /** Announced size of the blob. */
  readonly totalBytes: number;
  /** Undefined for the node's own, which have no limit but the store's. */
  readonly owner: UploadOwner | undefined;
  /** Space reserved: the bytes that arrived and a little ahead. */
  reservedBytes: number;
  /** Bytes in the file. */
  keptBytes: number;
  /** The connection that opened it last; earlier ones are refused. */
  writer: object | undefined;
  /** When bytes last arrived. */
  touchedSec: number;
  /** The pending operation on the file; the next one waits for it. */
  turn: Promise<unknown>;
  /** The store is working on it, so it is not idle. */
  isBusy: boolean;
  /** It was idle for too long, and its bytes are deleted. */
  isForgotten: boolean;
};

export type NewPartial = {
  readonly name: string;
  readonly totalBytes: number;
  readonly owner: UploadOwner | undefined;
};

/** Space is reserved in steps of this size, so that small writes need not ask each time. */
const stepBytes = 256 * 1024;

const tagOf = (words: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(words)).digest("hex").slice(0, 16);

export const ownerOf = (tenant: string, caller: string | undefined): UploadOwner => ({
  tenant: tagOf([tenant]),
  caller: caller === undefined ? undefined : tagOf([tenant, caller]),
});

export class PartialUploads {
  readonly #core: Core;
  readonly #folder: string;
  readonly #partials = new Map<string, Partial>();
  readonly #ledger: UploadLedger;

  constructor(core: Core) {
    this.#core = core;
    const { uploadShares, sizeBytesMax } = core.options;
    this.#ledger = new UploadLedger(uploadShares, sizeBytesMax, () => core.budget.offeredBytes);
    core.unwrittenBytes = () => this.#sum(({ reservedBytes, keptBytes }) => reservedBytes - keptBytes);
    this.#folder = join(core.root, "uploads");
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#folder)) this.#adopt(name);
  }

  /** Takes over a file of an earlier process, or removes it if it cannot be resumed. */
  #adopt(fileName: string): void {
    const path = join(this.#folder, fileName);
    const match = /^([0-9a-f]{64}\.(\d{1,16}))(?:\.([0-9a-f]{16})\.([0-9a-f]{16}|any))?$/.exec(fileName);
    const { size, mtimeMs } = statSync(path);
    if (!match || size === 0) return rmSync(path, { force: true, recursive: true });
    const [, name = "", total, tenant, caller] = match;
    // File names of older versions do not contain the owner.
    const owner = { tenant: tenant ?? "unknown", caller: caller === "any" ? undefined : caller };
    const partial = this.#add({ name, totalBytes: Number(total), owner }, path);
    partial.keptBytes = partial.reservedBytes = size;
    partial.touchedSec = Math.floor(mtimeMs / 1_000);
    this.#core.budget.takeOwn(size);
    this.#ledger.add(owner, size, 0);
  }

  #add({ name, totalBytes, owner }: NewPartial, path: string): Partial {
    const partial: Partial = {
      name,
      path,
      totalBytes,
      owner,
      reservedBytes: 0,
      keptBytes: 0,
      writer: undefined,
      touchedSec: this.#core.nowSec(),
      turn: Promise.resolve(),
      isBusy: false,
      isForgotten: false,
    };
    this.#partials.set(name, partial);
    if (owner) this.#ledger.add(owner, 0, 1);
    return partial;
  }

  get count(): number {
    return this.#partials.size;
  }

  get reservedBytes(): number {
    return this.#sum(({ reservedBytes }) => reservedBytes);
  }

  #sum(bytesOf: (partial: Partial) => number): number {
    let sum = 0;
    for (const partial of this.#partials.values()) sum += bytesOf(partial);
    return sum;
  }

  /** Contains the tenant: an upload of another tenant cannot be resumed or seen (B5). */
  nameOf(tenant: string, { uuid, digest }: UploadKey): string {
    const { fn, hash, sizeBytes } = partsOf(digest);
    const text = JSON.stringify([tenant, uuid, digestText(fn, hash, sizeBytes)]);
    return `${createHash("sha256").update(text).digest("hex")}.${sizeBytes}`;
  }

  keptBytes(name: string): number {
    return this.#partials.get(name)?.keptBytes ?? 0;
  }

  /** The upload of that name, created if there is none. Reserves no space yet, and evicts nothing. */
  async take(wanted: NewPartial): Promise<Partial> {
    const { name, totalBytes, owner } = wanted;
    const there = this.#partials.get(name);
    if (there) {
      await there.turn.catch(() => {});
      if (this.#partials.get(name) === there) return there;
    }
    if (totalBytes > this.#core.budget.offeredBytes)
      throw this.#core.noSpace("upload", { neededBytes: totalBytes, storeBytes: this.#core.budget.offeredBytes });
    if (owner) {
      const never = this.#ledger.excessOfWhole(owner, totalBytes);
      if (never) throw beyondLimit(never);
      await this.#checkLimit(owner, "count", 1);
    }
    const suffix = owner ? `.${owner.tenant}.${owner.caller ?? "any"}` : "";
    return this.#partials.get(name) ?? this.#add(wanted, join(this.#folder, `${name}${suffix}`));
  }

  /** Reserves space for its first `untilBytes`. Throws "exhausted" if there is none, or if its owner holds too much. */
  async reserve(partial: Partial, untilBytes: number): Promise<void> {
    const wanted = Math.min(partial.totalBytes, Math.ceil(untilBytes / stepBytes) * stepBytes);
    const more = wanted - partial.reservedBytes;
    if (more <= 0) return;
    const { owner } = partial;
    if (owner) await this.#checkLimit(owner, "bytes", more);
    const { budget } = this.#core;
    if (!budget.fits(more)) {
      await this.#core.makeSpace(more);
      // Others may have reserved theirs meanwhile.
      if (owner) await this.#checkLimit(owner, "bytes", more);
    }
    if (partial.isForgotten) return; // its writer gets an error when it continues
    if (!budget.take(more)) throw this.#core.noSpace("upload", { neededBytes: more });
    partial.reservedBytes += more;
    if (owner) this.#ledger.add(owner, more, 0);
  }

  /** Releases what was reserved ahead of the bytes that arrived. */
  settle(partial: Partial): void {
    const spareBytes = partial.reservedBytes - partial.keptBytes;
    if (partial.isForgotten || spareBytes <= 0) return;
    partial.reservedBytes -= spareBytes;
    this.#core.budget.give(spareBytes);
    if (partial.owner) this.#ledger.add(partial.owner, -spareBytes, 0);
  }

  async #checkLimit(owner: UploadOwner, what: Excess["what"], more: number): Promise<void> {
    const excess = this.#ledger.excess(owner, what, more);
    if (!excess) return;
    const mates = (): Partial[] =>
      [...this.#partials.values()].filter((one) => isWithin(excess.scope, one.owner, owner));
    await this.#forgetIdle(this.#core.options.uploadIdleMs, mates());
    const still = this.#ledger.excess(owner, what, more);
    if (still) throw beyondLimit(still, this.#untilIdleMs(mates()));
  }

  /** When the first of them may be dropped, to free space for others. */
  #untilIdleMs(partials: readonly Partial[]): number {
    const { uploadIdleMs } = this.#core.options;
    const oldestSec = partials.reduce((oldest, { touchedSec }) => Math.min(oldest, touchedSec), this.#core.nowSec());
    const ageMs = (this.#core.nowSec() - oldestSec) * 1_000;
    return Math.min(uploadIdleMs, Math.max(retryAfterMs, uploadIdleMs - ageMs));
  }

  /** Its file became a blob, or must be deleted. */
  async forget(partial: Partial, isFileGone = false): Promise<void> {
    if (partial.isForgotten) return;
    partial.isForgotten = true;
    this.#partials.delete(partial.name);
    this.#core.budget.give(partial.reservedBytes);
    if (partial.owner) this.#ledger.add(partial.owner, -partial.reservedBytes, -1);
    if (!isFileGone) await rm(partial.path, { force: true }).catch(() => {});
  }

  async abandon(name: string): Promise<void> {
    const partial = this.#partials.get(name);
    if (!partial) return;
    partial.writer = undefined;
    await partial.turn.catch(() => {});
    await this.forget(partial);
  }

  /** Drops uploads without progress for too long: minutes while space is short. */
  async reclaim(isShort: boolean): Promise<number> {
    const { uploadIdleMs, uploadKeptMs } = this.#core.options;
    return await this.#forgetIdle(isShort ? Math.min(uploadIdleMs, uploadKeptMs) : uploadKeptMs, [
      ...this.#partials.values(),
    ]);
  }

  async #forgetIdle(idleMs: number, partials: readonly Partial[]): Promise<number> {
    const beforeSec = this.#core.nowSec() - idleMs / 1_000;
    const idle = partials.filter(({ touchedSec, isBusy }) => touchedSec < beforeSec && !isBusy);
    await Promise.all(idle.map((one) => this.forget(one)));
    return idle.length;
  }
}
