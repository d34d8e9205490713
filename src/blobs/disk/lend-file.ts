/**
 * Lends a large blob's plain file to a reader that sends from it: an open file keeps its bytes even if it is deleted.
 */
import { readvSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import type { DigestParts } from "#base/digest.ts";
import type { LentFile } from "#blobs/store.ts";
import { fileName } from "./blob-files.ts";
import type { FileFacts } from "./check/file-stamps.ts";
import type { Core } from "./core.ts";
import { flags } from "./table/table.ts";
import { checkedFirstBytesMax } from "./upload/large-blobs.ts";

/** Undefined if the blob is stored in another way, or if its file is damaged or was just replaced: then read it. */
export async function lendFile(core: Core, entry: number, parts: DigestParts): Promise<LentFile | undefined> {
  const { table } = core.holdings;
  if (!table.has(entry, flags.file) || table.has(entry, flags.zstd)) return undefined;
  const name = fileName(table.fn(entry), table.key(entry).slice());
  let file: FileHandle;
  try {
    file = await open(core.files.path(name), "r");
  } catch {
    return undefined;
  }
  try {
    const facts = await file.stat();
    if (facts.size === parts.sizeBytes && (await isRight(core, entry, parts, facts)))
      return { file: quickly(core, file), release: () => file.close() };
  } catch {
    // as for a file of another size
  }
  await file.close();
  return undefined;
}

/** A very large file that was not checked yet is read instead, and checked meanwhile. */
const isRight = async (core: Core, entry: number, parts: DigestParts, facts: FileFacts): Promise<boolean> =>
  core.checks.isTrusted(entry, facts) ||
  (parts.sizeBytes <= checkedFirstBytesMax &&
    (await core.checks.check(entry, parts)) === "right" &&
    core.checks.wasRight(entry, facts));

/** Synchronous while that is fast: bytes fetched by a pool thread would have to move to this core. */
const quickly = (core: Core, file: FileHandle): LentFile["file"] => ({
  async readv<T extends readonly NodeJS.ArrayBufferView[]>(buffers: T, position?: number) {
    if (!core.gate.isOpen()) return await file.readv(buffers, position);
    return { bytesRead: core.gate.run(() => readvSync(file.fd, buffers, position)), buffers };
  },
});
