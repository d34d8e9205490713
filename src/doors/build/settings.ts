/** What an operator may choose about this door. */

export type BuildSettings = {
  /** The names of instances that are served; left out: any. */
  readonly instances?: readonly string[] | undefined;
  /** Larger blobs are refused before a byte of them is read. */
  readonly blobBytesMax: number;
  /** Bytes of all blobs of one batch together. Clients take messages of 4 MiB, in which names must fit, too. */
  readonly batchBytesMax: number;
};

export const buildSettingsDefault: BuildSettings = {
  blobBytesMax: 1024 ** 4,
  batchBytesMax: 4 * 1024 * 1024 - 256 * 1024,
};

/** No client takes a longer message unless it was told to. */
export const messageBytesMax = 4 * 1024 * 1024;
