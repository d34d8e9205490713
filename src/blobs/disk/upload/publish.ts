/** Turns a complete, verified file into a blob. */
import type { DigestParts } from "#base/digest.ts";
import { asDiskFault } from "#blobs/disk/disk-fault.ts";
import { fileName } from "#blobs/disk/blob-files.ts";
import type { Core } from "#blobs/disk/core.ts";
import { grant, visibleTo } from "#blobs/disk/disk-blobs.ts";
import { bitTenantMax } from "#blobs/disk/holdings.ts";
import { appendFileRecord } from "#blobs/disk/log/file-record.ts";
import { functionNumber, keyFromHex, keyWords } from "#blobs/disk/table/key.ts";
import { flags, noEntry } from "#blobs/disk/table/table.ts";

export type NewFile = {
  readonly path: string;
  readonly tenant: number;
  readonly diskBytes: number;
  readonly isFramed: boolean;
};

export async function publishFile(core: Core, parts: DigestParts, file: NewFile): Promise<void> {
  const { path, tenant, diskBytes, isFramed } = file;
  const fn = functionNumber(parts.fn);
  const key = new Uint32Array(keyWords);
  keyFromHex(key, fn, parts.hash);
  const visible = visibleTo(tenant);
  const record = async (): Promise<void> => {
    const header = { fn, isZstd: isFramed, accessSec: core.nowSec(), visible };
    const hash = Buffer.from(parts.hash, "hex");
    await appendFileRecord(core, { header, hash, sizeBytes: parts.sizeBytes, diskBytes });
  };
  try {
    const isSynced = core.options.sync === "synced";
    const isKnown = (): boolean => core.find(parts) !== noEntry;
    await core.files.publish(path, fileName(fn, key), { record, isKnown, isSynced });
  } catch (error) {
    throw asDiskFault(error, "write blob", { hash: parts.hash });
  }
  const entry = core.find(parts);
  if (entry !== noEntry) core.checks.trust(entry);
  if (entry !== noEntry && core.options.sync === "synced") core.holdings.table.setFlag(entry, flags.durable, true);
  if (tenant > bitTenantMax && entry !== noEntry) await grant(core, entry, tenant);
}
