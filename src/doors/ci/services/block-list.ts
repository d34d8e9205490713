/** The list of blocks that makes an upload whole, as Azure's clients send it. Pure. */
import { Problem } from "#http/problem.ts";

export const blockListBytesMax = 2 * 1024 * 1024;

const entry = /\s*<(Latest|Uncommitted|Committed)>([A-Za-z0-9+/=]{1,128})<\/\1>/y;
const opening = /^(?:\uFEFF)?\s*(?:<\?xml[^>]{0,200}\?>)?\s*<BlockList>/;

/** Ids in order. Only the one form that clients send is read, so there are no entities or other tricks of XML. */
export function readBlockList(text: string, blocksMax: number): readonly string[] {
  const start = opening.exec(text);
  if (!start) throw wrong("it does not begin with <BlockList>");
  const ids: string[] = [];
  let at = start[0].length;
  for (;;) {
    entry.lastIndex = at;
    const found = entry.exec(text);
    if (!found) break;
    if (ids.length === blocksMax) throw wrong(`it has more than ${blocksMax} blocks`);
    ids.push(found[2] ?? "");
    at = entry.lastIndex;
  }
  if (!/^\s*<\/BlockList>\s*$/.test(text.slice(at, at + 1_000)))
    throw wrong(`it cannot be read after ${ids.length} blocks`);
  return ids;
}

const wrong = (why: string): Problem => new Problem(400, `the list of blocks is not valid: ${why}`);

/** A block's id as part of a name. */
export function blockName(id: string | null): string {
  if (id === null || !/^[A-Za-z0-9+/]{1,126}={0,2}$/.test(id))
    throw new Problem(400, "blockid: base64 of at most 128 characters is expected");
  return id.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
