/** The limits of what one workflow may be (CI-31). */

export type Limits = {
  readonly fileLengthMax: number;
  /** Collections within one another. */
  readonly depthMax: number;
  /** After aliases have been followed: what stops a small file that expands without end. */
  readonly nodesMax: number;
  readonly resultBytesMax: number;
  readonly jobsMax: number;
  readonly calledDepthMax: number;
  readonly calledFilesMax: number;
  readonly areAnchorsAllowed: boolean;
};

export const standardLimits: Limits = {
  fileLengthMax: 1024 * 1024,
  depthMax: 50,
  nodesMax: 50_000,
  resultBytesMax: 10 * 1024 * 1024,
  jobsMax: 1000,
  calledDepthMax: 10,
  calledFilesMax: 50,
  areAnchorsAllowed: true,
};
