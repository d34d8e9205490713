/**
 * Puts segments of a release into its staging folder from what is on this machine: older releases, and a pack.
 *
 * RB1 A segment counts only if the bytes that were written have its digest; anything else is fetched as it is.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { digestSizeBytes, parseDigest, type Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { ignoreMissing } from "#base/ignore-missing.ts";
import { placesOf, rowOf } from "#doors/deploy/manifest/layout.ts";
import { distinctSegments, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import { ByteReader } from "./byte-reader.ts";
import { applyPatch, decompressed, type Bytes, type OldBytes } from "./patch.ts";
import type { Block, Pack } from "./pack.ts";

type Content = Pick<Manifest, "files">;
/** A release that is complete in a folder of this machine. */
export type Older = { readonly manifest: Content; readonly folder: string };

const pieceBytes = 256 * 1024;
const filesOpenMax = 32;

/** Copies what older releases have. Answers with the segments that are in place, verified. */
export async function reuse(work: string, fresh: Content, older: readonly Older[]): Promise<Set<Digest>> {
  const placed = new Set<Digest>();
  const known = older.map(({ manifest, folder }) => ({ folder, places: placesOf(manifest) }));
  await using out = new Segments(work, fresh);
  for (const digest of distinctSegments(fresh))
    for (const { folder, places } of known) {
      const [place] = places(digest);
      if (!place) continue;
      const range = { offset: place.offset, length: digestSizeBytes(digest) };
      await using bytes = new ByteReader(fileBytes(join(folder, place.path))(range));
      const isRight = await out.write(digest, bytes).catch((error: unknown) => {
        if (isFault(error, "corrupt")) return false;
        throw error; // it could not be written
      });
      if (isRight) placed.add(digest);
      if (isRight) break;
    }
  return placed;
}

/** Makes what is missing from the pack, whose bytes are in a file. Answers with the segments that came out right. */
export async function rebuild(
  work: string,
  fresh: Content,
  { pack, path, base, has }: RebuildFrom,
): Promise<{ readonly placed: ReadonlySet<Digest>; readonly wrong: readonly unknown[] }> {
  const placed = new Set<Digest>();
  const wrong: unknown[] = [];
  const inPack = fileBytes(path);
  await using old = base && new OldFiles(base);
  await using out = new Segments(work, fresh);
  let start = 0;
  for (const block of pack.blocks) {
    const at = start;
    start += block.bytes;
    if (block.segments.every((digest) => has.has(digest))) continue;
    const bytes: Bytes = ({ offset, length }) => inPack({ offset: at + offset, length });
    try {
      await using made = new ByteReader(madeOf(block, bytes, old));
      for (const digest of block.segments) {
        if (await out.write(digest, made)) placed.add(digest);
        else throw new Fault("corrupt", "rebuild segment", { digest, why: "its bytes do not have this digest" });
      }
    } catch (error) {
      if (!isFault(error, "corrupt")) throw error;
      wrong.push(error);
    }
  }
  return { placed, wrong };
}

export type RebuildFrom = {
  readonly pack: Pack;
  /** The file with the pack's bytes. */
  readonly path: string;
  readonly base: Older | undefined;
  /** What is in place already. */
  readonly has: ReadonlySet<Digest>;
};

function madeOf(block: Block, bytes: Bytes, old: OldFiles | undefined): AsyncIterable<Uint8Array> {
  const whole = { offset: 0, length: block.bytes };
  if (block.how === "raw") return bytes(whole);
  if (block.how === "zstd") return decompressed(bytes(whole));
  if (!old) throw new Fault("corrupt", "rebuild segment", { why: "a patch without an older release" });
  const sizeBytes = block.segments.reduce((sum, digest) => sum + digestSizeBytes(digest), 0);
  return applyPatch(bytes, { patchBytes: block.bytes, sizeBytes }, old.read);
}

/** The files of the release under way. */
class Segments implements AsyncDisposable {
  readonly #root: string;
  readonly #places;
  readonly #files = new Files("r+");

  constructor(root: string, content: Content) {
    this.#root = root;
    this.#places = placesOf(content);
  }

  /** Writes the next bytes to all places of the segment. Answers whether they are the segment's (RB1). */
  async write(digest: Digest, bytes: ByteReader): Promise<boolean> {
    const hashing = createHash("sha256");
    const size = digestSizeBytes(digest);
    const to = [];
    for (const { path, offset } of this.#places(digest)) to.push({ path: join(this.#root, path), offset });
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, Math.max(1, size)));
    for (let at = 0; at < size;) {
      const part = piece.subarray(0, Math.min(piece.length, size - at));
      await bytes.fill(part);
      hashing.update(part);
      for (const { path, offset } of to) await (await this.#files.open(path)).write(part, 0, part.length, offset + at);
      at += part.length;
    }
    return hashing.digest("hex") === parseDigest(digest)?.hash;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#files[Symbol.asyncDispose]();
  }
}

/** The row of an older release, read from its files. */
class OldFiles implements AsyncDisposable {
  readonly #row;
  readonly #places;
  readonly #folder: string;
  readonly #files = new Files("r");

  constructor({ manifest, folder }: Older) {
    this.#row = rowOf(manifest);
    this.#places = placesOf(manifest);
    this.#folder = folder;
  }

  readonly read: OldBytes = async (from, into) => {
    let got = 0;
    for (const { at, length, segment, offset } of this.#row.piecesIn(from, from + into.length)) {
      const [place] = this.#places(segment);
      if (!place) break;
      const file = await this.#files.open(join(this.#folder, place.path));
      got += (await file.read(into, at, length, place.offset + offset)).bytesRead;
    }
    if (got !== into.length) throw new Fault("corrupt", "read older release", { from, bytes: into.length, got });
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#files[Symbol.asyncDispose]();
  }
}

/** Files that stay open for a while, since neighbouring bytes are mostly in the same one. */
class Files implements AsyncDisposable {
  readonly #flags: "r" | "r+";
  readonly #open = new Map<string, FileHandle>();

  constructor(flags: "r" | "r+") {
    this.#flags = flags;
  }

  async open(path: string): Promise<FileHandle> {
    const known = this.#open.get(path);
    if (known) return known;
    for (const [oldest, file] of this.#open) {
      if (this.#open.size < filesOpenMax) break;
      this.#open.delete(oldest);
      await file.close();
    }
    const file = await open(path, this.#flags).catch(ignoreMissing);
    const made = file ?? (await this.#make(path));
    this.#open.set(path, made);
    return made;
  }

  async #make(path: string): Promise<FileHandle> {
    if (this.#flags === "r") throw new Fault("corrupt", "read older release", { path, why: "the file is gone" });
    await mkdir(dirname(path), { recursive: true });
    return await open(path, "w+");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#open.values()) await file.close();
  }
}

const fileBytes = (path: string): Bytes =>
  async function* ({ offset, length }) {
    if (length === 0) return;
    try {
      yield* createReadStream(path, { start: offset, end: offset + length - 1 }) as AsyncIterable<Uint8Array>;
    } catch (error) {
      throw new Fault("corrupt", "read file", { path, offset }, error);
    }
  };
