/**
 * The store knows digests and bytes, and nothing about jobs. All other behaviour is composed from this small interface.
 *
 * B1 A blob is found under a digest only if its bytes have that digest.
 * B2 A blob pinned until a time is not evicted before it, and is at least as durable as the journal.
 * B3 "Missing" is exact: a blob that is reported present can be read.
 * B4 An acknowledged write survives kill -9 of the process; a pinned blob survives power loss too.
 * B5 A tenant can neither read nor probe a blob that it was not given itself, although equal bytes are stored once.
 */
import type { FileHandle } from "node:fs/promises";
import type { Digest, DigestFunction } from "#base/digest.ts";
import type { Uploads } from "./uploads.ts";

export type Pin = { readonly digests: readonly Digest[]; readonly pinnedForMs: number };

/** The encoding in which bytes travel. Digests, offsets and sizes always refer to the plain bytes. */
export type Form = "plain" | "zstd";

export type Range = { readonly offset: number; readonly length?: number };

export type BlobStore = {
  /** Returns the digests that are not in the store. The others count as used now. */
  missing(digests: readonly Digest[]): Promise<readonly Digest[]>;
  /**
   * Throws Fault "not-found" before the first byte if the blob is missing, and "invalid" if the range begins outside
   * it. With form zstd: frames that decode to the bytes from `range.offset` on; `length` is not allowed then. A part is
   * valid until the reader asks for the next one.
   */
  read(digest: Digest, range?: Range, form?: Form): AsyncIterable<Uint8Array>;
  /**
   * Verifies the bytes against the digest ("invalid" if they differ) and acknowledges as B4 says; "exhausted" if there
   * is no free space. Writing a blob that is already there is cheap and changes nothing.
   */
  write(digest: Digest, bytes: AsyncIterable<Uint8Array> | Uint8Array, form?: Form): Promise<void>;
  /** Pins all of them for the time, or none: then it returns the missing ones. */
  pin(digests: readonly Digest[], forMs: number): Promise<Pin | { readonly missing: readonly Digest[] }>;
  /**
   * The plain bytes of a blob as an open file, so that a server can send from it: exactly as long as the blob, and
   * unchanged until released, even if the blob is evicted. Undefined if there is no such file; `read` may still find
   * the blob.
   */
  file?(digest: Digest): Promise<LentFile | undefined>;
  /**
   * Takes a finished file of this machine into the store without copying it, and verifies it like a write. Nothing may
   * have it open, and its name is gone afterwards. False, and it stays where it is, if only a copy can be stored.
   */
  adopt?(digest: Digest, path: string): Promise<boolean>;
  /**
   * The plain bytes of a blob as a file of this machine, for a program that opens it itself and only reads: there until
   * released, even if the blob is evicted. Undefined if there is no such file; `read` may still find the blob.
   */
  path?(digest: Digest): Promise<LentPath | undefined>;
  /**
   * The bytes of a range, verified, without reading the rest of the blob: for a store that is far away. Undefined if
   * they cannot be had in that way; `read` may still find them.
   */
  part?(digest: Digest, range: Required<Range>): Promise<Uint8Array | undefined>;
  /** Answers that need no waiting. They are the same answers as those of the other methods, only sooner. */
  readonly prompt?: Prompt;
};

export type LentFile = { readonly file: Pick<FileHandle, "readv">; release(): Promise<void> };

export type LentPath = { readonly path: string; release(): Promise<void> };

export type Prompt = {
  /** Whether the blob is there; counts as a use. `hash` holds the raw hash at position `at`. */
  has(fn: DigestFunction, hash: Uint8Array, at: number, sizeBytes: number): boolean;
  /**
   * `has` for many blobs at once, which is faster: sets `found[i]` to 1 for each that is there and leaves the others.
   * The raw hashes are contiguous, and the first begins at a multiple of four bytes.
   */
  hasMany?(fn: DigestFunction, batch: DigestBatch, found: Uint8Array): void;
  /** The size of the blob with this hash, for callers that know only the hash; undefined if there is none. */
  sizeOf?(fn: DigestFunction, hash: string): number | undefined;
  /** The whole blob, if it is in memory. The caller must not change it. */
  bytes(digest: Digest): Uint8Array | undefined;
};

export type DigestBatch = {
  readonly hashes: Uint8Array<ArrayBuffer>;
  /** The same memory as `hashes`, as 32-bit words: for callers that ask for the same digests repeatedly. */
  readonly words?: Uint32Array;
  readonly sizes: Float64Array;
  readonly count: number;
};

/** All bytes that doors store, by tenant. A tenant's data is reached only through its `TenantStore` (B5). */
export type Store = {
  forTenant(tenant: string): TenantStore;
  close(): Promise<void>;
};

export type TenantStore = {
  readonly blobs: BlobStore;
  /** The blobs on this machine, without asking a tier; left out if that is `blobs`. */
  readonly near?: BlobStore;
  readonly uploads: Uploads;
};
