/** Lends a large blob's file by its path, to a program of this machine that opens it itself. */
import { stat } from "node:fs/promises";
import type { DigestParts } from "#base/digest.ts";
import type { LentPath } from "#blobs/store.ts";
import { fileName } from "./blob-files.ts";
import type { Core } from "./core.ts";
import { flags } from "./table/table.ts";

/** Undefined if the blob is stored in another way, or if its file is damaged or was just replaced: then read it. */
export async function lendPath(core: Core, entry: number, parts: DigestParts): Promise<LentPath | undefined> {
  const { table } = core.holdings;
  if (!table.has(entry, flags.file) || table.has(entry, flags.zstd)) return undefined;
  const name = fileName(table.fn(entry), table.key(entry).slice());
  const path = core.files.path(name);
  const release = core.files.lend(name);
  try {
    const facts = await stat(path);
    const isTrusted = facts.size === parts.sizeBytes && core.checks.isTrusted(entry, facts);
    if (isTrusted || (await core.checks.check(entry, parts)) === "right") return { path, release };
  } catch {
    // as for a file of another size
  }
  await release();
  return undefined;
}
