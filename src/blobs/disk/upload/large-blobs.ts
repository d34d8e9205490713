/** Reads large blobs, plain or as zstd, from both kinds of files. */
import { statSync, type Stats } from "node:fs";
import { digestText, type DigestParts } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Form } from "#blobs/store.ts";
import { packed } from "#blobs/zstd.ts";
import { fileName, type FileName } from "#blobs/disk/blob-files.ts";
import { copyOf, isStill, type Copy } from "#blobs/disk/check/same-copy.ts";
import type { Core } from "#blobs/disk/core.ts";
import { asDiskFault } from "#blobs/disk/disk-fault.ts";
import { framePlainBytes, packFrame, readFrameTable, unpackFrame } from "#blobs/disk/log/framed-file.ts";
import { closeFile, fileFacts, openFile, piecesOf, readAt } from "#blobs/disk/read-file.ts";
import { isBadSector } from "#blobs/disk/check/bad-sector.ts";
import { flags } from "#blobs/disk/table/table.ts";

type Span = { readonly from: number; readonly to: number };

export type LargeRead = { readonly span: Span; readonly form: Form };

/** Larger ones are sent while they are checked, and end with an error if they turn out wrong. */
export const checkedFirstBytesMax = 64 * 1024 * 1024;

/** A blob's file, open: `readLarge` closes it. */
export type LargeFile = {
  readonly fd: number;
  readonly copy: Copy;
  readonly facts: Stats;
  readonly isFramed: boolean;
  /** If not, it is checked while it is sent. */
  readonly isChecked: boolean;
};

/**
 * A file that was not checked yet is checked before its first byte is handed out, unless it is very large and read as a
 * whole. A damaged blob is dropped, and "not-found". Undefined if the file or the entry was replaced or removed
 * meanwhile: then look it up again.
 */
export async function openLarge(
  core: Core,
  entry: number,
  parts: DigestParts,
  span: Span,
): Promise<LargeFile | undefined> {
  const copy = copyOf(core, entry);
  const isFramed = core.holdings.table.has(entry, flags.zstd);
  let fd: number;
  try {
    fd = await openFile(core.files.path(nameOf(core, entry)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return await dropIfStill(core, copy, parts, undefined);
    throw asDiskFault(error, "read blob", { hash: parts.hash });
  }
  let file: LargeFile | undefined;
  try {
    const facts = await fileFacts(fd);
    const isLater = parts.sizeBytes > checkedFirstBytesMax && span.from === 0 && span.to === parts.sizeBytes;
    const isWhole = isFramed || facts.size === parts.sizeBytes;
    const isTrusted = core.checks.isTrusted(entry, facts);
    const verdict = !isWhole ? "wrong" : isTrusted || isLater ? "right" : await core.checks.check(entry, parts);
    if (verdict === "wrong") return await dropIfStill(core, copy, parts, facts);
    const isChecked = isTrusted || (!isLater && core.checks.wasRight(entry, facts));
    if (verdict === "right" && (isChecked || isLater)) file = { fd, copy, facts, isFramed, isChecked };
    return file;
  } finally {
    if (!file) await closeFile(fd);
  }
}

const nameOf = ({ holdings: { table } }: Core, entry: number): FileName =>
  fileName(table.fn(entry), table.key(entry).slice());

/**
 * `span` counts plain bytes. The end of a file that is checked meanwhile is not handed out unless it is right. A
 * damaged blob is dropped: "not-found" before the first byte, "corrupt" after it, because the reader may have wrong
 * bytes then.
 */
export async function* readLarge(
  core: Core,
  file: LargeFile,
  parts: DigestParts,
  { span, form }: LargeRead,
): AsyncGenerator<Uint8Array> {
  const { fd, copy, facts, isFramed, isChecked } = file;
  let hasBegun = false;
  try {
    const pieces = isFramed
      ? fromFrames(core, fd, { fileBytes: facts.size, span, form })
      : inForm(form, piecesOf(core, fd, span));
    for await (const piece of isChecked ? pieces : whileChecked(core, file, parts, pieces)) {
      hasBegun = true;
      yield piece;
    }
  } catch (error) {
    if (!isDamage(error)) throw asDiskFault(error, "read blob", { hash: parts.hash });
    if (!hasBegun) await dropIfStill(core, copy, parts, facts);
    else await dropIfStill(core, copy, parts, facts).catch(() => {}); // "corrupt" says more
    throw new Fault(hasBegun ? "corrupt" : "unavailable", "read blob", { digest: digestOf(parts), why: damaged });
  } finally {
    await closeFile(fd);
  }
}

const inForm = (form: Form, pieces: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> =>
  form === "zstd" ? packed(pieces) : pieces;

/** The plain bytes of a framed file, unchecked. */
export async function* plainBytes(core: Core, path: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  const fd = await openFile(path);
  try {
    const { size } = await fileFacts(fd);
    yield* fromFrames(core, fd, { fileBytes: size, span: { from: 0, to: sizeBytes }, form: "plain" });
  } catch (error) {
    throw isDamage(error) ? new Fault("corrupt", "read blob", {}, error) : error;
  } finally {
    await closeFile(fd);
  }
}

/** Holds the last piece back until the whole file was found right. */
async function* whileChecked(
  core: Core,
  { copy: { entry }, facts }: LargeFile,
  parts: DigestParts,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let isWrong = false;
  const checking = core.checks.check(entry, parts).then((verdict) => {
    isWrong = verdict === "wrong";
    return verdict === "right" && core.checks.wasRight(entry, facts);
  });
  checking.catch(() => {}); // reported below
  const wrong = (): Fault => new Fault("corrupt", "read blob", { hash: parts.hash });
  let held: Uint8Array | undefined;
  for await (const piece of pieces) {
    if (isWrong) throw wrong();
    if (held) yield held;
    held = piece.buffer.byteLength === piece.length ? piece : Uint8Array.from(piece); // shared memory may be reused
  }
  const isRight = await checking;
  if (isWrong) throw wrong();
  // Evicted or replaced meanwhile: another file was checked, or none.
  if (!isRight)
    throw new Fault("unavailable", "read blob", { hash: parts.hash, why: "it was replaced meanwhile; read it again" });
  if (held) yield held;
}

const isDamage = (error: unknown): boolean =>
  isFault(error, "corrupt") ||
  isBadSector(error) ||
  String((error as NodeJS.ErrnoException).code).startsWith("ZSTD_error");

const damaged = "its copy was damaged; read it again";
const digestOf = ({ fn, hash, sizeBytes }: DigestParts): string => digestText(fn, hash, sizeBytes);

/**
 * For a reader that found the file wrong, and has it open, or found none. Drops the copy and throws "not-found".
 * Returns undefined if the blob has another copy or none by now.
 */
async function dropIfStill(core: Core, copy: Copy, parts: DigestParts, facts: Stats | undefined): Promise<undefined> {
  if (!isStill(core, parts, copy)) return undefined;
  const name = nameOf(core, copy.entry);
  await core.files.settled(name);
  const now = statSync(core.files.path(name), { throwIfNoEntry: false });
  if (now?.ino !== facts?.ino || !isStill(core, parts, copy)) return undefined;
  await core.dropCopy(copy.entry, digestOf(parts));
  throw new Fault("not-found", "read blob", { digest: digestOf(parts), why: damaged });
}

type Framed = { readonly fileBytes: number; readonly span: Span; readonly form: Form };

async function* fromFrames(core: Core, fd: number, { fileBytes, span, form }: Framed): AsyncGenerator<Uint8Array> {
  const starts = await readFrameTable((target, position) => readAt(core, fd, target, position), fileBytes);
  const last = starts.length - 1;
  for (let i = Math.floor(span.from / framePlainBytes); i < last && i * framePlainBytes < span.to; i += 1) {
    const [start = 0, end = 0] = [starts[i], starts[i + 1]];
    const plainStart = i * framePlainBytes;
    if (form === "zstd" && span.from <= plainStart) {
      // From here on, the file's own frames are what was asked for.
      return yield* piecesOf(core, fd, { from: start, to: starts[last] ?? 0 });
    }
    const frame = Buffer.allocUnsafe(end - start);
    if ((await readAt(core, fd, frame, start)) !== frame.length)
      throw new Fault("corrupt", "read blob", { why: "a frame is cut off" });
    const plain = await unpackFrame(frame);
    const part = plain.subarray(Math.max(0, span.from - plainStart), Math.min(plain.length, span.to - plainStart));
    yield form === "zstd" ? await packFrame(part) : part;
  }
}
