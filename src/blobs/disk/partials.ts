/** What has come of uploads that are not finished: a file each, with room reserved for the whole blob. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { digestText } from "#base/digest.ts";
import { partsOf } from "#blobs/hashing.ts";
import type { UploadKey } from "#blobs/uploads.ts";
import type { Core } from "./core.ts";
import { noRoom } from "./disk-fault.ts";

export type Partial = {
  readonly path: string;
  /** Of the whole blob: reserved. */
  readonly totalBytes: number;
  /** What is in the file. */
  keptBytes: number;
  /** Who writes: whoever opened it last. */
  writer: object | undefined;
  touchedSec: number;
  /** What is being done to the file; the next waits for it. */
  turn: Promise<unknown>;
};

export class PartialUploads {
  readonly #core: Core;
  readonly #folder: string;
  readonly #partials = new Map<string, Partial>();

  constructor(core: Core) {
    this.#core = core;
    core.unwrittenBytes = () => this.#unwrittenBytes;
    this.#folder = join(core.root, "uploads");
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#folder)) this.#adopt(name);
  }

  /** Left by an earlier process: gone on with if it can be, otherwise reclaimed in time. */
  #adopt(name: string): void {
    const path = join(this.#folder, name);
    const { size, mtimeMs } = statSync(path);
    const totalBytes = Number(/^[0-9a-f]{64}\.(\d{1,16})$/.exec(name)?.[1] ?? size);
    this.#core.room.takeOwn(totalBytes);
    const touchedSec = Math.floor(mtimeMs / 1_000);
    this.#partials.set(name, {
      path,
      totalBytes,
      keptBytes: size,
      writer: undefined,
      touchedSec,
      turn: Promise.resolve(),
    });
  }

  get count(): number {
    return this.#partials.size;
  }

  /** What is taken for all of them, however much has come. */
  get reservedBytes(): number {
    let sum = 0;
    for (const { totalBytes } of this.#partials.values()) sum += totalBytes;
    return sum;
  }

  get #unwrittenBytes(): number {
    let sum = 0;
    for (const { totalBytes, keptBytes } of this.#partials.values()) sum += totalBytes - keptBytes;
    return sum;
  }

  /** The blob's own size is part of the name, so that a restart knows what was reserved. */
  nameOf(tenant: string, { uuid, digest }: UploadKey): string {
    const { fn, hash, sizeBytes } = partsOf(digest);
    const text = JSON.stringify([tenant, uuid, digestText(fn, hash, sizeBytes)]);
    return `${createHash("sha256").update(text).digest("hex")}.${sizeBytes}`;
  }

  keptBytes(name: string): number {
    return this.#partials.get(name)?.keptBytes ?? 0;
  }

  async take(name: string, totalBytes: number): Promise<Partial> {
    const there = this.#partials.get(name);
    if (there) {
      await there.turn.catch(() => {});
      if (this.#partials.get(name) === there) return there;
    }
    const { room } = this.#core;
    if (!room.take(totalBytes)) {
      await this.reclaim();
      if (!room.fits(totalBytes)) await this.#core.makeRoom(totalBytes);
      if (!room.take(totalBytes)) throw noRoom("begin upload", { neededBytes: totalBytes, usedBytes: room.usedBytes });
    }
    const again = this.#partials.get(name); // somebody else was as quick
    if (again) {
      room.give(totalBytes);
      return again;
    }
    const path = join(this.#folder, name);
    const touchedSec = this.#core.nowSec();
    const partial: Partial = { path, totalBytes, keptBytes: 0, writer: undefined, touchedSec, turn: Promise.resolve() };
    this.#partials.set(name, partial);
    return partial;
  }

  /** Its file became a blob, or is to go. */
  async forget(partial: Partial, isFileGone = false): Promise<void> {
    for (const [name, one] of this.#partials) {
      if (one !== partial) continue;
      this.#partials.delete(name);
      this.#core.room.give(partial.totalBytes);
    }
    if (!isFileGone) await rm(partial.path, { force: true }).catch(() => {});
  }

  async abandon(name: string): Promise<void> {
    const partial = this.#partials.get(name);
    if (!partial) return;
    partial.writer = undefined;
    await partial.turn.catch(() => {});
    await this.forget(partial);
  }

  /** What nobody has gone on with for too long. */
  async reclaim(): Promise<number> {
    const beforeSec = this.#core.nowSec() - this.#core.options.uploadKeptMs / 1_000;
    const old = [...this.#partials.values()].filter((one) => !one.writer && one.touchedSec < beforeSec);
    await Promise.all(old.map((one) => this.forget(one)));
    return old.length;
  }
}
