/** The record of a blob that is a file: written when the file is new, and again when the record was lost. */
import type { Core } from "#blobs/disk/core.ts";
import { hashLength } from "#blobs/disk/table/key.ts";
import { flags } from "#blobs/disk/table/table.ts";
import { kinds, paddedHashBytes, writeUint64, type NewHeader } from "./record.ts";

export type FileRecord = {
  readonly header: Omit<NewHeader, "kind" | "fn"> & { readonly fn: number };
  readonly hash: Uint8Array;
  readonly sizeBytes: number;
  readonly diskBytes: number;
};

export async function appendFileRecord(core: Core, { header, hash, sizeBytes, diskBytes }: FileRecord): Promise<void> {
  const paddedBytes = paddedHashBytes(hashLength(header.fn));
  await core.append({
    header: { kind: kinds.file, ...header },
    bodyBytes: paddedBytes + 16,
    fill(target, at) {
      target.fill(0, at, at + paddedBytes);
      target.set(hash, at);
      writeUint64(target, at + paddedBytes, sizeBytes);
      writeUint64(target, at + paddedBytes + 8, diskBytes);
    },
    isOwn: true, // its space was reserved before
  });
}

/** From what the table knows of it. False if that is not enough: of a long hash the key is a hash of its own. */
export async function recordFileAgain(core: Core, entry: number): Promise<boolean> {
  const { table, further } = core.holdings;
  const fn = table.fn(entry);
  const hash = Buffer.from(Uint32Array.from(table.key(entry)).buffer).subarray(0, hashLength(fn));
  if (hash.length < hashLength(fn)) return false;
  const [accessSec, keepSec, visible] = [table.accessSec(entry), table.keepSec(entry), table.visible(entry)];
  const header = { fn, isZstd: table.has(entry, flags.zstd), accessSec, keepSec, visible };
  await appendFileRecord(core, { header, hash, sizeBytes: table.sizeOf(entry), diskBytes: table.fileBytes(entry) });
  for (const tenant of further.get(entry) ?? [])
    await core.appendKeys({ kind: kinds.grants, visible: tenant }, [entry]);
  return true;
}
