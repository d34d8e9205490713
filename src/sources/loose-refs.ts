/**
 * What a bare repository of this node says of its refs in plain files: git writes each ref that changes into a file of
 * its own, by renaming. A process of git for each look would cost a hundred times as much. Undefined: ask git.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isRef, isSha } from "./names.ts";

/** The branch that HEAD names. */
export async function headIn(path: string): Promise<string | undefined> {
  const text = await readFile(join(path, "HEAD"), "utf8").catch(() => "");
  const ref = text.startsWith("ref: ") ? text.slice("ref: ".length).trim() : "";
  return isRef(ref) ? ref : undefined;
}

/** What a ref points to, which may be a tag with a message. */
export async function looseRef(path: string, ref: string): Promise<string | undefined> {
  if (!isRef(ref)) return undefined;
  const text = (await readFile(join(path, ref), "utf8").catch(() => "")).trim();
  return isSha(text) ? text : undefined;
}
