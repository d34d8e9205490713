/**
 * What a repository on this machine says of its refs in plain files: one for each ref that has changed, and one for all
 * that were packed. A process of git for each look would cost a hundred times as much. Undefined: ask git.
 */
import { readFile, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isRef, isSha } from "./names.ts";

const packedBytesMax = 1 << 20;

/** Where git keeps what it knows, if the address is a path. */
export async function gitFolderOf(url: string): Promise<string | undefined> {
  if (!isAbsolute(url) && !url.startsWith("file:///")) return undefined;
  const path = isAbsolute(url) ? url : fileURLToPath(url);
  for (const folder of [join(path, ".git"), path])
    if ((await stat(join(folder, "objects")).catch(() => undefined))?.isDirectory()) return folder;
  return undefined;
}

/** The branch that HEAD names. */
export async function headIn(folder: string): Promise<string | undefined> {
  const text = await readFile(join(folder, "HEAD"), "utf8").catch(() => "");
  const ref = text.startsWith("ref: ") ? text.slice("ref: ".length).trim() : "";
  return isRef(ref) ? ref : undefined;
}

/**
 * What a ref points to, which may be a tag with a message. Git packs a ref before it removes its file: who finds no
 * file finds it among the packed.
 */
export async function refIn(folder: string, ref: string): Promise<string | undefined> {
  if (!isRef(ref)) return undefined;
  const text = (await readFile(join(folder, ref), "utf8").catch(() => "")).trim();
  if (text !== "") return isSha(text) ? text : undefined;
  const packed = join(folder, "packed-refs");
  const { size = 0 } = (await stat(packed).catch(() => undefined)) ?? {};
  if (size === 0 || size > packedBytesMax) return undefined;
  const all = `\n${await readFile(packed, "utf8").catch(() => "")}`;
  const end = all.indexOf(` ${ref}\n`);
  const sha = end < 0 ? "" : all.slice(all.lastIndexOf("\n", end) + 1, end);
  return isSha(sha) ? sha : undefined;
}
