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

export type Uploads = {
  /** How many plain bytes are kept; all of them, and complete, when the blob is in the store. */
  committed(key: UploadKey): Promise<{ readonly sizeBytes: number; readonly complete: boolean }>;
  /**
   * Goes on at `offset`: at most what is committed ("invalid" otherwise); bytes that were kept after it are forgotten.
   * Room for the whole blob is reserved first ("exhausted"). Two uploads of one blob under different uuids do not
   * know of each other; the second to open one key takes it over from the first.
   */
  open(key: UploadKey, offset: number, form?: Form): Promise<Upload>;
};

export type Upload = {
  /** Takes the bytes, in the form it was opened with; they are the caller's again when it has resolved. */
  append(bytes: Uint8Array): Promise<void>;
  /** Plain bytes taken so far, those before `offset` included. */
  readonly sizeBytes: number;
  /** Verifies and publishes; "invalid", and nothing is kept, when the bytes have another digest. */
  finish(): Promise<void>;
  /** The connection broke: what came is kept for a while. */
  suspend(): Promise<void>;
};
