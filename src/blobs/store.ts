/**
 * The store knows digests and bytes, and nothing of jobs. Every other store behaviour is a composition over this
 * small interface.
 *
 * B1 A blob is found under a digest only if its bytes have that digest.
 * B2 What is pinned until a time is not evicted before it, and is at least as durable as the journal.
 * B3 "Missing" is exactly right: a blob said to be there can be read.
 * B4 What was acknowledged survives kill -9 of the process; what was pinned, loss of power too.
 * B5 A tenant can neither read nor probe what it has not itself been given, although bytes are kept once for all.
 */
import type { FileHandle } from "node:fs/promises";
import type { Digest, DigestFunction } from "#base/digest.ts";
import type { Uploads } from "./uploads.ts";

export type Pin = { readonly digests: readonly Digest[]; readonly pinnedForMs: number };

/** In what form bytes travel. A digest is always that of the plain bytes, and so is every offset and size. */
export type Form = "plain" | "zstd";

export type Range = { readonly offset: number; readonly length?: number };

export type BlobStore = {
  /** Which of these are not there. Those that are count as used now. */
  missing(digests: readonly Digest[]): Promise<readonly Digest[]>;
  /**
   * Throws Fault "not-found" before the first byte when the blob is not there, and "invalid" for a range that begins
   * outside it. As zstd: frames that decode to the bytes from `range.offset` on (no `length` then). A part is the
   * reader's until it asks for the next one.
   */
  read(digest: Digest, range?: Range, form?: Form): AsyncIterable<Uint8Array>;
  /**
   * Verifies the bytes against the digest ("invalid" otherwise) and acknowledges as B4 says; no room is "exhausted".
   * Writing what is already there is cheap and changes nothing.
   */
  write(digest: Digest, bytes: AsyncIterable<Uint8Array> | Uint8Array, form?: Form): Promise<void>;
  /** Keeps all of them for the time, or none: answers with the missing ones then. */
  pin(digests: readonly Digest[], forMs: number): Promise<Pin | { readonly missing: readonly Digest[] }>;
  /**
   * The plain bytes of a blob as a file, for who wants to send them from there: exactly as long as the blob, the same
   * bytes until it is released, whatever becomes of the blob. Undefined when there is none to lend; `read` knows more.
   */
  file?(digest: Digest): Promise<LentFile | undefined>;
  /** What it can say without waiting. Whoever uses it gets the same answers sooner, never other ones. */
  readonly prompt?: Prompt;
};

export type LentFile = { readonly file: Pick<FileHandle, "readv">; release(): Promise<void> };

export type Prompt = {
  /** Whether the blob is there; counts as a use. `hash` holds its raw bytes at `at`. */
  has(fn: DigestFunction, hash: Uint8Array, at: number, sizeBytes: number): boolean;
  /**
   * The same for many at once, which is quicker: sets `found[i]` to 1 for each that is there and leaves it otherwise.
   * Raw hashes lie one behind the other from the start of a word on.
   */
  hasMany?(fn: DigestFunction, asked: AskedDigests, found: Uint8Array): void;
  /** How large the blob of this hash is, for who knows only that; undefined where there is none. */
  sizeOf?(fn: DigestFunction, hash: string): number | undefined;
  /** The whole blob, if it is in memory. To be looked at only. */
  bytes(digest: Digest): Uint8Array | undefined;
};

export type AskedDigests = {
  readonly hashes: Uint8Array<ArrayBuffer>;
  /** The same memory in words: for who asks for the same again and again. */
  readonly words?: Uint32Array;
  readonly sizes: Float64Array;
  readonly count: number;
};

/** Everything doors keep bytes in. What is a tenant's is reached through it alone (B5). */
export type Store = {
  forTenant(tenant: string): TenantStore;
  close(): Promise<void>;
};

export type TenantStore = {
  readonly blobs: BlobStore;
  /** What this machine has itself, without asking anybody; left out where that is `blobs`. */
  readonly near?: BlobStore;
  readonly uploads: Uploads;
};
