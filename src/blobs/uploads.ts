/**
 * Large blobs arrive over minutes and connections break: an upload is kept by its key and can be gone on with, after a
 * restart and on another node too.
 *
 * B6 `committed` never counts a byte that a later `open` at that offset would not find.
 */
import type { Digest } from "#base/digest.ts";
import type { Form } from "./store.ts";

/** Clients may use one uuid for several blobs, so the digest is part of the key. */
export type UploadKey = { readonly uuid: string; readonly digest: Digest };

export type OpenHow = {
  readonly form?: Form;
  /** Who uploads, for the limits of one caller; left out: only those of the tenant hold. */
  readonly caller?: string;
};

export type Uploads = {
  /** How many plain bytes are kept; all of them, and complete, when the blob is in the store. */
  committed(key: UploadKey): Promise<{ readonly sizeBytes: number; readonly complete: boolean }>;
  /**
   * Goes on at `offset`: at most what is committed ("invalid" otherwise); bytes that were kept after it are forgotten.
   * Takes no room: that is taken as bytes come. "exhausted" when the owner has too many unfinished uploads, or when
   * so large a blob could never be finished. Two uploads of one blob under different uuids do not know of each other;
   * the second to open one key takes it over from the first.
   */
  open(key: UploadKey, offset: number, how?: OpenHow): Promise<Upload>;
};

export type Upload = {
  /**
   * Takes the bytes, in the form it was opened with; they are the caller's again when it has resolved. Throws
   * "exhausted" when there is no room for them, or when unfinished uploads of the owner hold too much.
   */
  append(bytes: Uint8Array): Promise<void>;
  /** Plain bytes taken so far, those before `offset` included. */
  readonly sizeBytes: number;
  /** Verifies and publishes; "invalid", and nothing is kept, when the bytes have another digest. */
  finish(): Promise<void>;
  /** The connection broke: what came is kept for a while. */
  suspend(): Promise<void>;
};
