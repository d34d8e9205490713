/** Reads large blobs, plain or as zstd, from both kinds of files. */
import { digestText, type DigestParts } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Form } from "#blobs/store.ts";
import { packed } from "#blobs/zstd.ts";
import { fileName } from "#blobs/disk/blob-files.ts";
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

/**
 * `span` counts plain bytes. A file that was not checked yet is checked before its first byte is handed out; a large
 * one that is read as a whole is checked meanwhile, and its end is not handed out unless it is right. A damaged blob is
 * dropped: "not-found" before the first byte, "corrupt" after it, because the reader may have wrong bytes then.
 */
export async function* readLarge(
  core: Core,
  entry: number,
  parts: DigestParts,
  { span, form }: LargeRead,
): AsyncGenerator<Uint8Array> {
  const { table } = core.holdings;
  const path = core.files.path(fileName(table.fn(entry), table.key(entry).slice()));
  const isFramed = table.has(entry, flags.zstd);
  const digest = digestText(parts.fn, parts.hash, parts.sizeBytes);
  let fd: number;
  try {
    fd = await openFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw asDiskFault(error, "read blob", { digest });
    return await dropIfSame(core, entry, parts, false);
  }
  let hasBegun = false;
  try {
    const facts = await fileFacts(fd);
    const isWhole = isFramed || facts.size === parts.sizeBytes;
    if (!isWhole) return await dropIfSame(core, entry, parts, false);
    const isTrusted = core.checks.isTrusted(entry, facts);
    const isLater = parts.sizeBytes > checkedFirstBytesMax && span.from === 0 && span.to === parts.sizeBytes;
    if (!isTrusted && !isLater && !(await core.checks.check(entry, parts)))
      return await dropIfSame(core, entry, parts, false);
    const pieces = isFramed
      ? fromFrames(core, fd, { fileBytes: facts.size, span, form })
      : inForm(form, piecesOf(core, fd, span));
    for await (const piece of isTrusted || !isLater ? pieces : whileChecked(core, entry, parts, pieces)) {
      hasBegun = true;
      yield piece;
    }
  } catch (error) {
    if (isFault(error, "not-found")) throw error;
    if (isDamage(error)) return await dropIfSame(core, entry, parts, hasBegun);
    throw asDiskFault(error, "read blob", { digest });
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
  entry: number,
  parts: DigestParts,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let isWrong = false;
  const checking = core.checks.check(entry, parts);
  checking.then(
    (isRight) => (isWrong = !isRight),
    () => {}, // reported below
  );
  const wrong = (): Fault => new Fault("corrupt", "read blob", { hash: parts.hash });
  let held: Uint8Array | undefined;
  for await (const piece of pieces) {
    if (isWrong) throw wrong();
    if (held) yield held;
    held = piece.buffer.byteLength === piece.length ? piece : Uint8Array.from(piece); // shared memory may be reused
  }
  if (!(await checking)) throw wrong();
  if (held) yield held;
}

const isDamage = (error: unknown): boolean =>
  isFault(error, "corrupt") ||
  isBadSector(error) ||
  String((error as NodeJS.ErrnoException).code).startsWith("ZSTD_error");

async function dropIfSame(core: Core, entry: number, parts: DigestParts, hasBegun: boolean): Promise<never> {
  const digest = digestText(parts.fn, parts.hash, parts.sizeBytes);
  if (core.find(parts) === entry) await core.dropCopy(entry, digest);
  const why = "its copy was damaged; read it again";
  throw new Fault(hasBegun ? "corrupt" : "not-found", "read blob", { digest, why });
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
