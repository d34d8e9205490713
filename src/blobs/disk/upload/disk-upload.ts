/**
 * One connection's part in an upload: takes bytes, keeps them if the connection breaks, publishes the complete blob.
 */
import { constants } from "node:fs";
import { open, rm, type FileHandle } from "node:fs/promises";
import type { DigestParts } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { Form } from "#blobs/store.ts";
import type { UploadOwner } from "#blobs/upload-limits.ts";
import type { Upload } from "#blobs/uploads.ts";
import { ZstdUnpacker } from "#blobs/zstd.ts";
import type { Core } from "#blobs/disk/core.ts";
import { checkBytes, grant, isGood, keepSmall, type TenantView } from "#blobs/disk/disk-blobs.ts";
import { asDiskFault, storeIsClosed } from "#blobs/disk/disk-fault.ts";
import { writeFramed } from "#blobs/disk/log/frame-writer.ts";
import type { FileHashing } from "./file-hashing.ts";
import type { Partial, PartialUploads } from "./partials.ts";
import { publishFile } from "./publish.ts";
import { noEntry } from "#blobs/disk/table/table.ts";

export type Opening = {
  readonly name: string;
  /** Undefined for the node's own. */
  readonly owner: UploadOwner | undefined;
  readonly parts: DigestParts;
  readonly view: TenantView;
  readonly offset: number;
  readonly form: Form;
};

export async function openUpload(core: Core, partials: PartialUploads, opening: Opening): Promise<Upload> {
  const { name, owner, parts, offset } = opening;
  if (core.log.isClosed || core.log.lost) throw core.log.lost ?? storeIsClosed("upload");
  const wrong = (committed: number): Fault =>
    new Fault("invalid", "resume upload", { hash: parts.hash, offset, committed });
  if (!(offset >= 0 && offset <= partials.keptBytes(name))) throw wrong(partials.keptBytes(name));
  const partial = await partials.take({ name, totalBytes: parts.sizeBytes, owner });
  if (offset > partial.keptBytes) throw wrong(partial.keptBytes);
  const upload = new DiskUpload(core, partials, opening, partial);
  await upload.begin();
  return upload;
}

/** Small pieces are gathered up to this size before they are written. */
const gatherBytes = 256 * 1024;

class DiskUpload implements Upload {
  readonly #core: Core;
  readonly #partials: PartialUploads;
  readonly #opening: Opening;
  readonly #partial: Partial;
  readonly #unpacker: ZstdUnpacker | undefined;
  /** Bytes that arrived and are not in the file: for a small blob, all of them. */
  #gathered: Buffer;
  #gatheredBytes = 0;
  #file: FileHandle | undefined;
  #hashing: FileHashing | undefined;
  #hasEnded = false;

  constructor(core: Core, partials: PartialUploads, opening: Opening, partial: Partial) {
    const { parts, offset, form } = opening;
    this.#core = core;
    this.#partials = partials;
    this.#opening = opening;
    this.#partial = partial;
    this.#gathered = Buffer.allocUnsafe(Math.min(gatherBytes, parts.sizeBytes));
    if (form === "zstd") this.#unpacker = new ZstdUnpacker(parts.sizeBytes - offset);
    partial.writer = this;
    partial.touchedSec = core.nowSec();
  }

  get #isSmall(): boolean {
    return this.#opening.parts.sizeBytes <= this.#core.options.packedBytesMax;
  }

  get sizeBytes(): number {
    return (this.#isSmall ? 0 : this.#partial.keptBytes) + this.#gatheredBytes;
  }

  /** Truncates to the requested offset. */
  async begin(): Promise<void> {
    const { offset, parts } = this.#opening;
    const partial = this.#partial;
    if (this.#isSmall && partial.keptBytes === 0) return;
    await this.#inTurn(async () => {
      const file = await open(partial.path, constants.O_RDWR | constants.O_CREAT, 0o600);
      this.#file = file;
      if (partial.keptBytes > offset) {
        partial.keptBytes = offset;
        await file.truncate(offset);
        this.#partials.settle(partial);
      }
      if (!this.#isSmall) {
        this.#hashing = this.#core.hashing.begin(parts, partial.path);
        this.#hashing.advance(offset);
        return;
      }
      const { bytesRead } = await file.read(this.#gathered, 0, offset, 0);
      this.#gatheredBytes = bytesRead;
    });
  }

  async append(bytes: Uint8Array): Promise<void> {
    this.#checkMine();
    await this.#inTurn(async () => {
      const plain = this.#unpacker ? await this.#unpacker.push(bytes) : [bytes];
      this.#checkMine();
      await this.#take(plain);
    });
  }

  async finish(): Promise<void> {
    this.#checkMine();
    await this.#inTurn(async () => {
      if (this.#unpacker) {
        const rest = await this.#unpacker.end();
        this.#checkMine();
        await this.#take(rest);
      }
      if (this.#isSmall) return await this.#finishSmall();
      await this.#flush();
      await this.#finishLarge();
    });
    await this.#end();
  }

  async suspend(): Promise<void> {
    if (this.#hasEnded || this.#partial.writer !== this) return await this.#close();
    try {
      await this.#inTurn(async () => {
        const partial = this.#partial;
        if (partial.writer !== this) return;
        if (this.#gatheredBytes > 0) await this.#keepGathered();
        if (partial.keptBytes > 0) this.#partials.settle(partial);
        else await this.#partials.forget(partial, !this.#file); // nothing worth resuming
      });
    } finally {
      await this.#end();
    }
  }

  /** Writes a small blob's bytes, so far only in memory, to a file. */
  async #keepGathered(): Promise<void> {
    if (!this.#isSmall) return await this.#flush();
    this.#file ??= await open(this.#partial.path, constants.O_RDWR | constants.O_CREAT, 0o600);
    await this.#file.truncate(0);
    this.#partial.keptBytes = 0;
    await this.#flush();
  }

  async #take(plain: readonly Uint8Array[]): Promise<void> {
    const { sizeBytes, hash } = this.#opening.parts;
    this.#partial.touchedSec = this.#core.nowSec();
    for (const part of plain) {
      if (this.sizeBytes + part.length > sizeBytes)
        throw new Fault("invalid", "write blob", { hash, why: "more bytes than the digest says" });
      await this.#partials.reserve(this.#partial, this.sizeBytes + part.length);
      this.#checkMine();
      if (this.#gatheredBytes + part.length > this.#gathered.length) await this.#flush();
      if (part.length > this.#gathered.length) await this.#write(part);
      else {
        this.#gathered.set(part, this.#gatheredBytes);
        this.#gatheredBytes += part.length;
      }
    }
  }

  async #flush(): Promise<void> {
    if (this.#gatheredBytes === 0) return;
    const bytes = this.#gathered.subarray(0, this.#gatheredBytes);
    await this.#write(bytes);
    this.#gatheredBytes = 0;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    const partial = this.#partial;
    this.#file ??= await open(partial.path, constants.O_RDWR | constants.O_CREAT, 0o600);
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await this.#file.write(bytes, at, bytes.length - at, partial.keptBytes + at);
      at += bytesWritten;
    }
    partial.keptBytes += bytes.length;
    this.#hashing?.advance(partial.keptBytes);
  }

  async #finishSmall(): Promise<void> {
    const bytes = this.#gathered.subarray(0, this.#gatheredBytes);
    checkBytes(this.#opening.parts, bytes);
    await keepSmall(this.#core, this.#opening.view, this.#opening.parts, bytes);
    await this.#partials.forget(this.#partial, this.#partial.keptBytes === 0 && !this.#file);
  }

  async #finishLarge(): Promise<void> {
    const core = this.#core;
    const { parts, view } = this.#opening;
    const partial = this.#partial;
    const got = partial.keptBytes === parts.sizeBytes ? await this.#hashing?.finish(parts.sizeBytes) : undefined;
    if (got !== parts.hash)
      throw new Fault("invalid", "write blob", {
        hash: parts.hash,
        sizeBytes: partial.keptBytes,
        why: got === undefined ? "fewer bytes than the digest says" : "the bytes have another digest",
      });
    const given = view.assigned();
    const tenant = typeof given === "number" ? given : await given;
    const entry = core.find(parts);
    if (entry !== noEntry && (await isGood(core, entry, parts))) {
      await grant(core, entry, tenant);
      return await this.#partials.forget(partial);
    }
    if (core.options.compression === "none") {
      await publishFile(core, parts, { path: partial.path, tenant, diskBytes: parts.sizeBytes, isFramed: false });
      return await this.#partials.forget(partial, true);
    }
    const framed = `${partial.path}.zst`;
    await core.borrowSpace(parts.sizeBytes, async () => await this.#publishFramed(framed, tenant));
    await this.#partials.forget(partial);
  }

  async #publishFramed(framed: string, tenant: number): Promise<void> {
    const core = this.#core;
    const { parts } = this.#opening;
    const { path } = this.#partial;
    try {
      const diskBytes = await writeFramed(core, path, framed, parts.sizeBytes);
      await publishFile(core, parts, { path: framed, tenant, diskBytes, isFramed: true });
    } finally {
      await rm(framed, { force: true });
    }
  }

  /** Runs one operation after another. Wrong bytes are dropped; after a disk error the stored ones are kept. */
  async #inTurn(work: () => Promise<void>): Promise<void> {
    const partial = this.#partial;
    const mine = partial.turn
      .catch(() => {})
      .then(async () => {
        partial.isBusy = true;
        try {
          await work();
        } finally {
          partial.isBusy = false;
        }
      });
    partial.turn = mine;
    try {
      await mine;
    } catch (error) {
      const fault = asDiskFault(error, "write blob", { hash: this.#opening.parts.hash });
      if (fault.code === "invalid" && partial.writer === this) await this.#partials.forget(partial);
      if (fault.code === "invalid" || fault.code === "stale") await this.#end();
      throw fault;
    }
  }

  async #end(): Promise<void> {
    if (this.#partial.writer === this) this.#partial.writer = undefined;
    await this.#close();
  }

  async #close(): Promise<void> {
    this.#hasEnded = true;
    this.#unpacker?.close();
    this.#hashing?.close();
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  #checkMine(): void {
    if (this.#partial.writer === this && !this.#partial.isForgotten) return;
    const forgotten = "it had no progress for too long and its space was needed; start it again";
    const taken = this.#partial.isForgotten ? forgotten : "another connection took the upload over";
    const why = this.#hasEnded ? "it has ended" : taken;
    throw new Fault("stale", "write blob", { hash: this.#opening.parts.hash, why });
  }
}
