/**
 * Unfinished uploads: a file each, whose room is taken as the bytes come. A file's name says whose it is, so that
 * limits per tenant and per caller hold after a restart.
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
  /** Of the whole blob, as announced. */
  readonly totalBytes: number;
  /** Undefined: the node's own, which has no limit but the store's. */
  readonly owner: UploadOwner | undefined;
  /** Taken from the store's room: what came, and a little ahead of it. */
  reservedBytes: number;
  /** What is in the file. */
  keptBytes: number;
  /** Who writes: whoever opened it last. */
  writer: object | undefined;
  /** When bytes last came. */
  touchedSec: number;
  /** What is being done to the file; the next waits for it. */
  turn: Promise<unknown>;
  /** The store is at work on it, so it is not idle however long that takes. */
  isBusy: boolean;
  /** It was idle for too long, and its bytes are gone. */
  isForgotten: boolean;
};

export type NewPartial = {
  readonly name: string;
  readonly totalBytes: number;
  readonly owner: UploadOwner | undefined;
};

/** Room is taken in steps of this size, so that not every piece has to ask for it. */
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
    this.#ledger = new UploadLedger(uploadShares, sizeBytesMax, () => core.room.offeredBytes);
    core.unwrittenBytes = () => this.#sum(({ reservedBytes, keptBytes }) => reservedBytes - keptBytes);
    this.#folder = join(core.root, "uploads");
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#folder)) this.#adopt(name);
  }

  /** Left by an earlier process. What nobody can go on with is removed. */
  #adopt(fileName: string): void {
    const path = join(this.#folder, fileName);
    const match = /^([0-9a-f]{64}\.(\d{1,16}))(?:\.([0-9a-f]{16})\.([0-9a-f]{16}|any))?$/.exec(fileName);
    const { size, mtimeMs } = statSync(path);
    if (!match || size === 0) return rmSync(path, { force: true, recursive: true });
    const [, name = "", total, tenant, caller] = match;
    // Files of older versions do not say whose they are.
    const owner = { tenant: tenant ?? "unknown", caller: caller === "any" ? undefined : caller };
    const partial = this.#add({ name, totalBytes: Number(total), owner }, path);
    partial.keptBytes = partial.reservedBytes = size;
    partial.touchedSec = Math.floor(mtimeMs / 1_000);
    this.#core.room.takeOwn(size);
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

  /** The tenant is part of it: nobody goes on with, or hears of, an upload of another tenant (B5). */
  nameOf(tenant: string, { uuid, digest }: UploadKey): string {
    const { fn, hash, sizeBytes } = partsOf(digest);
    const text = JSON.stringify([tenant, uuid, digestText(fn, hash, sizeBytes)]);
    return `${createHash("sha256").update(text).digest("hex")}.${sizeBytes}`;
  }

  keptBytes(name: string): number {
    return this.#partials.get(name)?.keptBytes ?? 0;
  }

  /** The upload of that name, begun if there is none. Takes no room yet, and evicts nothing. */
  async take(wanted: NewPartial): Promise<Partial> {
    const { name, totalBytes, owner } = wanted;
    const there = this.#partials.get(name);
    if (there) {
      await there.turn.catch(() => {});
      if (this.#partials.get(name) === there) return there;
    }
    if (totalBytes > this.#core.room.offeredBytes)
      throw this.#core.noRoom("upload", { neededBytes: totalBytes, storeBytes: this.#core.room.offeredBytes });
    if (owner) {
      const never = this.#ledger.excessOfWhole(owner, totalBytes);
      if (never) throw beyondLimit(never);
      await this.#checkLimit(owner, "count", 1);
    }
    const suffix = owner ? `.${owner.tenant}.${owner.caller ?? "any"}` : "";
    return this.#partials.get(name) ?? this.#add(wanted, join(this.#folder, `${name}${suffix}`));
  }

  /** Takes the room for its first `untilBytes`. Throws "exhausted" when there is none, or when its owner has enough. */
  async reserve(partial: Partial, untilBytes: number): Promise<void> {
    const wanted = Math.min(partial.totalBytes, Math.ceil(untilBytes / stepBytes) * stepBytes);
    const more = wanted - partial.reservedBytes;
    if (more <= 0) return;
    const { owner } = partial;
    if (owner) await this.#checkLimit(owner, "bytes", more);
    const { room } = this.#core;
    if (!room.fits(more)) {
      await this.#core.makeRoom(more);
      // Others may have taken theirs meanwhile.
      if (owner) await this.#checkLimit(owner, "bytes", more);
    }
    if (partial.isForgotten) return; // its writer is told so when it goes on
    if (!room.take(more)) throw this.#core.noRoom("upload", { neededBytes: more });
    partial.reservedBytes += more;
    if (owner) this.#ledger.add(owner, more, 0);
  }

  /** Gives back what was taken ahead of the bytes that came. */
  settle(partial: Partial): void {
    const spareBytes = partial.reservedBytes - partial.keptBytes;
    if (partial.isForgotten || spareBytes <= 0) return;
    partial.reservedBytes -= spareBytes;
    this.#core.room.give(spareBytes);
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

  /** When the first of them may be forgotten, to give others room. */
  #untilIdleMs(partials: readonly Partial[]): number {
    const { uploadIdleMs } = this.#core.options;
    const oldestSec = partials.reduce((oldest, { touchedSec }) => Math.min(oldest, touchedSec), this.#core.nowSec());
    const ageMs = (this.#core.nowSec() - oldestSec) * 1_000;
    return Math.min(uploadIdleMs, Math.max(retryAfterMs, uploadIdleMs - ageMs));
  }

  /** Its file became a blob, or is to go. */
  async forget(partial: Partial, isFileGone = false): Promise<void> {
    if (partial.isForgotten) return;
    partial.isForgotten = true;
    this.#partials.delete(partial.name);
    this.#core.room.give(partial.reservedBytes);
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

  /** What nothing came of for too long; while room is short, that is minutes. */
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
