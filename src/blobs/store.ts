/**
 * The store knows digests and bytes, and nothing of jobs. Every other store behaviour is a composition over this
 * small interface.
 *
 * B1 A blob is found under a digest only if its bytes have that digest.
 * B2 What is pinned until a time is not evicted before it, and is at least as durable as the journal.
 * B3 "Missing" is exactly right: a blob said to be there can be read.
 */
import type { Digest } from "#base/digest.ts";

export type Pin = { readonly digests: readonly Digest[]; readonly pinnedForMs: number };

export type BlobStore = {
  /** Which of these are not there. */
  missing(digests: readonly Digest[]): Promise<readonly Digest[]>;
  /** Throws Fault "not-found" before the first byte when the blob is not there. */
  read(digest: Digest, range?: { readonly offset: number; readonly length?: number }): AsyncIterable<Uint8Array>;
  /** Verifies the bytes against the digest; writing what is already there is cheap and changes nothing. */
  write(digest: Digest, bytes: AsyncIterable<Uint8Array> | Uint8Array): Promise<void>;
  /** Keeps all of them for the time, or none: answers with the missing ones then. */
  pin(digests: readonly Digest[], forMs: number): Promise<Pin | { readonly missing: readonly Digest[] }>;
};
