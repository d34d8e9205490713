/** Where the output of a task is once an attempt at it has ended: its door knows, and says so by this. */
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Result } from "#kernel/model/model.ts";

/** How an attempt ended: with a result, or with a message. */
export type AttemptEnd =
  | { readonly result: Result }
  /** `left` is what it left nevertheless. */
  | { readonly failure: string; readonly left?: Result | undefined };

export type Printed = {
  /** The claim under which it was printed, where the end says so. */
  readonly token?: number | undefined;
  /** By the name of the stream. A stream without a digest was empty, or its bytes are not known. */
  readonly streams: Readonly<Record<string, Digest>>;
  readonly blobs: BlobStore;
};

export type PrintedByDoor = {
  /** Names of the streams that its tasks print to, in the order in which they are shown. */
  readonly names: readonly string[];
  find(end: AttemptEnd, tenant: string): Promise<Printed | undefined>;
};
