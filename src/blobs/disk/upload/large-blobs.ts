/** Reads large blobs, plain or as zstd, from both kinds of files. */
import { digestText, type DigestParts } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Form } from "#blobs/store.ts";
import { packed } from "#blobs/zstd.ts";
import { fileName } from "#blobs/disk/blob-files.ts";
import type { Core } from "#blobs/disk/core.ts";
import { asDiskFault } from "#blobs/disk/disk-fault.ts";
import { framePlainBytes, packFrame, readFrameTable, unpackFrame } from "#blobs/disk/log/framed-file.ts";
import { closeFile, fileSize, openFile, piecesOf, readAt } from "#blobs/disk/read-file.ts";
import { flags } from "#blobs/disk/table/table.ts";

type Span = { readonly from: number; readonly to: number };

/** `span` counts plain bytes. */
export async function* readLarge(
  core: Core,
  entry: number,
  parts: DigestParts,
  { span, form }: { readonly span: Span; readonly form: Form },
): AsyncGenerator<Uint8Array> {
  const { table } = core.holdings;
  const name = fileName(table.fn(entry), table.key(entry).slice());
  const isFramed = table.has(entry, flags.zstd);
  const digest = digestText(parts.fn, parts.hash, parts.sizeBytes);
  let fd: number;
  try {
    fd = await openFile(core.files.path(name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw asDiskFault(error, "read blob", { digest });
    if (core.find(parts) !== entry) throw new Fault("not-found", "read blob", { digest });
    return await core.dropDamaged(entry, { digest });
  }
  try {
    const fileBytes = await fileSize(fd);
    const isWhole = isFramed || fileBytes === parts.sizeBytes;
    if (!isWhole) return await dropIfSame(core, entry, parts);
    if (isFramed) yield* fromFrames(core, fd, { fileBytes, span, form });
    else if (form === "zstd") yield* packed(piecesOf(core, fd, span));
    else yield* piecesOf(core, fd, span);
  } catch (error) {
    if (isFault(error, "not-found")) throw error;
    if (isDamage(error)) return await dropIfSame(core, entry, parts);
    throw asDiskFault(error, "read blob", { digest });
  } finally {
    await closeFile(fd);
  }
}

const isDamage = (error: unknown): boolean =>
  isFault(error, "corrupt") || String((error as NodeJS.ErrnoException).code).startsWith("ZSTD_error");

async function dropIfSame(core: Core, entry: number, parts: DigestParts): Promise<never> {
  const digest = digestText(parts.fn, parts.hash, parts.sizeBytes);
  if (core.find(parts) === entry) return await core.dropDamaged(entry, { digest });
  throw new Fault("not-found", "read blob", { digest });
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
