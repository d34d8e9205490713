/**
 * Buffers bytes whose digest is not known before the last of them has arrived: in memory while they are few and in an
 * unnamed file when they are many. What uploads hold here is limited per caller, per tenant and in total.
 */
import { randomUUID } from "node:crypto";
import { open, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { digestText, type Digest, type DigestFunction } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { createHasher } from "#blobs/hashing.ts";
import { type Room, Rooms } from "#blobs/spool-room.ts";
import { beyondLimit, UploadLedger, uploadSharesDefault, type Excess, type UploadOwner } from "#blobs/upload-limits.ts";

export type SpoolOptions = {
  readonly folder: string;
  /** For one upload, before it goes to a file. */
  readonly memoryBytesEach: number;
  /** For all of them together. */
  readonly memoryBytesMax: number;
  /** For all of them together, in memory and in files; a tenant and a caller may hold a share of it. */
  readonly bytesMax: number;
};

/** The owner of the bytes. */
export type SpoolOwner = { readonly tenant: string; readonly principal: string };

/** When to try again after a limit was reached: uploads here either progress, or end within a minute. */
const retryAfterMs = 10_000;

export type Spooled = AsyncDisposable & {
  readonly digest: Digest;
  /** Call it once. */
  content(): Uint8Array | AsyncIterable<Uint8Array>;
};

export class Spool {
  readonly #options: SpoolOptions;
  readonly #ledger: UploadLedger;
  readonly #rooms: Rooms;
  #memoryBytes = 0;

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#ledger = new UploadLedger(uploadSharesDefault, options.bytesMax);
    this.#rooms = new Rooms(this.#ledger);
  }

  /** Waits until so many bytes fit; `take` fills the room. */
  async reserve({ tenant, principal }: SpoolOwner, sizeBytes: number, clock: Clock, waitMs: number): Promise<Room> {
    return await this.#rooms.reserve({ tenant, caller: principal }, sizeBytes, clock, waitMs);
  }

  async take(
    parts: AsyncIterable<Uint8Array>,
    { tenant, principal }: SpoolOwner,
    fn: DigestFunction = "sha256",
    room?: Room,
  ): Promise<Spooled> {
    const owner = { tenant, caller: principal };
    this.#check(owner, "count", 1);
    await using undo = new AsyncDisposableStack();
    const hasher = createHasher(fn);
    const held: Uint8Array[] = [];
    let heldBytes = 0;
    let sizeBytes = 0;
    let file: FileHandle | undefined;
    this.#ledger.add(owner, 0, 1);
    undo.defer(() => void (this.#memoryBytes -= heldBytes));
    undo.defer(() => {
      this.#ledger.add(owner, -sizeBytes, -1);
      this.#rooms.wake();
    });

    for await (const part of parts) {
      room?.fill(part.length);
      this.#check(owner, "bytes", part.length);
      this.#ledger.add(owner, part.length, 0);
      hasher.update(part);
      sizeBytes += part.length;
      if (!file && this.#fits(heldBytes, part.length)) {
        held.push(Uint8Array.from(part));
        heldBytes += part.length;
        this.#memoryBytes += part.length;
        continue;
      }
      if (!file) {
        file = undo.use(await this.#unnamed());
        for (const earlier of held.splice(0)) await file.writeFile(earlier);
        this.#memoryBytes -= heldBytes;
        heldBytes = 0;
      }
      await file.writeFile(part);
    }
    const kept = undo.move();
    return {
      digest: digestText(fn, hasher.hex(), sizeBytes),
      content: () => (file ? slices(file, sizeBytes) : Buffer.concat(held)),
      [Symbol.asyncDispose]: () => kept.disposeAsync(),
    };
  }

  #check(owner: UploadOwner, what: Excess["what"], more: number): void {
    const excess = this.#ledger.excess(owner, what, more);
    if (excess) throw beyondLimit(excess, retryAfterMs);
  }

  #fits(heldBytes: number, moreBytes: number): boolean {
    const { memoryBytesEach, memoryBytesMax } = this.#options;
    return heldBytes + moreBytes <= memoryBytesEach && this.#memoryBytes + moreBytes <= memoryBytesMax;
  }

  /** No other process can find it, and nothing of it is left however this process ends. */
  async #unnamed(): Promise<FileHandle> {
    const path = join(this.#options.folder, `spool-${randomUUID()}`);
    try {
      const file = await open(path, "wx+", 0o600);
      await rm(path);
      return file;
    } catch (error) {
      const errno = (error as NodeJS.ErrnoException).code;
      throw new Fault(errno === "ENOSPC" ? "exhausted" : "unavailable", "take an upload", { errno }, error);
    }
  }
}

const MiB = 1024 * 1024;

/** As a node has it; `bytesMax` is shared by all that is uploaded without a digest. */
export const spoolIn = (folder: string, bytesMax = 32 * 1024 * MiB): Spool =>
  new Spool({ folder, memoryBytesEach: MiB, memoryBytesMax: 64 * MiB, bytesMax });

const sliceBytes = 256 * 1024;

async function* slices(file: FileHandle, sizeBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < sizeBytes;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(sliceBytes), 0, sliceBytes, at);
    if (bytesRead === 0) throw new Fault("unavailable", "read an upload back", { at, sizeBytes });
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
