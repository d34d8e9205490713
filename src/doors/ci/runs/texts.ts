/** Long texts are blobs: what the kernel holds is short, whatever a workflow or its outputs are. */
import type { Digest } from "#base/digest.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";

export type Kept<T> = { readonly value: T } | { readonly blob: Digest };

/** A quarter of what a spec or a result may be: other things stand beside it. */
const inlineBytesMax = 16 * 1024;
/** As long as a run may take. */
const keptMs = 35 * 24 * 3_600_000;

export async function keep<T>(blobs: BlobStore, value: T, bytesMax = inlineBytesMax): Promise<Kept<T>> {
  const text = JSON.stringify(value);
  return Buffer.byteLength(text) <= bytesMax ? { value } : { blob: await writeText(blobs, text) };
}

/** As a blob that stays for as long as a run may be run again. */
export async function writeText(blobs: BlobStore, text: string): Promise<Digest> {
  const bytes = Buffer.from(text);
  const blob = sha256Digest(bytes);
  await blobs.write(blob, bytes);
  await blobs.pin([blob], keptMs);
  return blob;
}

/** What was kept is of our own making. Throws Fault "not-found" where the store has lost it. */
export async function recall<T>(blobs: BlobStore, kept: Kept<T>): Promise<T> {
  if ("value" in kept) return kept.value;
  const parts: Uint8Array[] = [];
  for await (const part of blobs.read(kept.blob)) parts.push(Uint8Array.from(part));
  return JSON.parse(Buffer.concat(parts).toString("utf8")) as T;
}
