/**
 * Large blobs arrive over minutes, and connections break: an upload is stored under its key and can be resumed, also
 * after a restart and on another node.
 *
 * B6 `committed` never counts a byte that a later `open` at that offset would not find.
 */
import type { Digest } from "#base/digest.ts";
import type { Form } from "./store.ts";

/** Clients may use one uuid for several blobs, so the digest is part of the key. */
export type UploadKey = { readonly uuid: string; readonly digest: Digest };

export type OpenHow = {
  readonly form?: Form;
  /** The caller, for the limits per caller; left out: only the tenant's limits apply. */
  readonly caller?: string;
};

export type Uploads = {
  /** The number of plain bytes stored; `complete` if the blob is in the store. */
  committed(key: UploadKey): Promise<{ readonly sizeBytes: number; readonly complete: boolean }>;
  /**
   * Resumes at `offset`, which is at most the committed size ("invalid" otherwise); bytes stored after it are dropped.
   * Reserves no space: `append` does. Throws "exhausted" if the owner has too many unfinished uploads, or if so large a
   * blob could never be finished. Two uploads of one blob under different uuids are independent; opening a key again
   * takes it over from the earlier caller.
   */
  open(key: UploadKey, offset: number, how?: OpenHow): Promise<Upload>;
};

export type Upload = {
  /**
   * Stores the bytes, in the form that the upload was opened with; the caller may reuse them when it has resolved.
   * Throws "exhausted" if there is no free space, or if the owner's unfinished uploads hold too much.
   */
  append(bytes: Uint8Array): Promise<void>;
  /** Plain bytes so far, including those before `offset`. */
  readonly sizeBytes: number;
  /** Verifies and publishes the blob. Throws "invalid", and drops all bytes, if they have another digest. */
  finish(): Promise<void>;
  /** The connection broke: keep the bytes for a while. */
  suspend(): Promise<void>;
};
