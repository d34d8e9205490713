/** The operator's settings for this door. */

export type BuildSettings = {
  /** The instance names that are served; left out: any. */
  readonly instances?: readonly string[] | undefined;
  /** Larger blobs are refused before a byte of them is read. */
  readonly blobBytesMax: number;
  /** All blobs of one batch together. Clients accept messages of 4 MiB, in which names must fit, too. */
  readonly batchBytesMax: number;
};

export const buildSettingsDefault: BuildSettings = {
  blobBytesMax: 1024 ** 4,
  batchBytesMax: 4 * 1024 * 1024 - 256 * 1024,
};

/** No client accepts a longer message unless configured to. */
export const messageBytesMax = 4 * 1024 * 1024;
