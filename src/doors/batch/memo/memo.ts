/**
 * Results of tasks, found again across jobs and days, by tenant. The index names a small document; that names the pack.
 *
 * BM2 A result is reused only while its pack can be read.
 * BM3 A result is entered by the shard's owner once its commit counts, never by the task itself.
 */
import type { Digest } from "#base/digest.ts";
import { isDigest } from "#base/digest.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import type { TaskResult } from "#doors/batch/documents.ts";
import type { Publisher } from "#shard/outbox/outbox.ts";
import { differences, type TaskKey } from "./key.ts";

/** What does not depend on the job that asks. */
export type MemoResult = Pick<TaskResult, "pack" | "rows" | "bytes" | "shares" | "cuts" | "skipped">;
type MemoDocument = { readonly version: 1; readonly inputs: TaskKey["inputs"]; readonly result: MemoResult };

export type MemoPorts = { readonly index: ActionIndex; readonly blobs: BlobStore };

const keySpace = "batch/key/1";
const slotSpace = "batch/slot/1";
const inputsMax = 1_000;

export async function findMemo(
  { key }: TaskKey,
  tenant: string,
  { index, blobs }: MemoPorts,
): Promise<{ readonly found: MemoResult | undefined; readonly before: Digest | undefined }> {
  const document = await read({ tenant, space: keySpace, name: key }, { index, blobs });
  if (!document) return { found: undefined, before: undefined };
  const { result } = document;
  const missing = await blobs.missing([result.pack]);
  return { found: missing.length === 0 ? result : undefined, before: result.pack };
}

/** Why there was none. */
export async function whyNoMemo({ slot, inputs }: TaskKey, tenant: string, ports: MemoPorts): Promise<string> {
  const before = await read({ tenant, space: slotSpace, name: slot }, ports);
  return differences(inputs, before?.inputs);
}

async function read(
  at: { readonly tenant: string; readonly space: string; readonly name: string },
  { index, blobs }: MemoPorts,
): Promise<MemoDocument | undefined> {
  const entry = await index.get(at);
  if (!entry || (await blobs.missing([entry.digest])).length > 0) return undefined;
  try {
    return JSON.parse(Buffer.from(await wholeBlob(blobs, entry.digest)).toString("utf8")) as MemoDocument;
  } catch {
    return undefined; // gone in between, or not ours: computed again
  }
}

export type Publication = { readonly key: string; readonly slot: string; readonly memo: Digest };

/** Writes the document that the index will name; what the result asks to publish. */
export async function keepMemo(
  { key, slot, inputs }: TaskKey,
  { pack, rows, bytes, shares, cuts, skipped }: MemoResult,
  blobs: BlobStore,
): Promise<{ readonly memo: Digest; readonly publish: string } | undefined> {
  if (Object.keys(inputs).length > inputsMax) return undefined;
  const document: MemoDocument = {
    version: 1,
    inputs,
    result: { pack, rows, bytes, shares, cuts, ...(skipped && { skipped }) },
  };
  const encoded = Buffer.from(JSON.stringify(document));
  const memo = sha256Digest(encoded);
  await blobs.write(memo, encoded);
  return { memo, publish: JSON.stringify({ key, slot, memo } satisfies Publication) };
}

export const memoPublisher =
  (index: ActionIndex, refused: (why: string) => void): Publisher =>
  async ({ tenant, publish, result, committedAtMs }) => {
    const wanted = readPublication(publish);
    if (!wanted || !result.digests.includes(wanted.memo)) {
      refused("it names no document of its result");
      return "done";
    }
    const entry = { digest: wanted.memo, principal: "batch", atMs: committedAtMs };
    await index.put({ tenant, space: keySpace, name: wanted.key }, entry);
    await index.put({ tenant, space: slotSpace, name: wanted.slot }, entry);
    return "done";
  };

function readPublication(text: string): Publication | undefined {
  try {
    const { key, slot, memo } = JSON.parse(text) as Partial<Publication>;
    const isHex = (one: unknown): one is string => typeof one === "string" && /^[0-9a-f]{64}$/.test(one);
    return isHex(key) && isHex(slot) && typeof memo === "string" && isDigest(memo) ? { key, slot, memo } : undefined;
  } catch {
    return undefined;
  }
}
