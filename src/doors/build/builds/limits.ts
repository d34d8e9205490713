/** The limits of one build. */
export const buildLimits = {
  /** A view of a job shows at most ten thousand tasks, and planning tasks count, too. */
  actionsMax: 8_000,
  /** The number of stages that a job may have. */
  groupsMax: 1_000,
  /** Actions that are planned at once. */
  groupActionsMax: 1_000,
  inputsMax: 200_000,
  /** Small files that are given with the build, together. */
  contentsBytesMax: 4 * 1024 * 1024,
  /** The whole build, encoded. */
  buildBytesMax: 16 * 1024 * 1024,
  /** A build as a document: parsing and checking that costs many times as much. */
  documentBytesMax: 8 * 1024 * 1024,
  nameLengthMax: 150,
  keyLengthMax: 200,
  requestIdLengthMax: 128,
  deadlineMsDefault: 24 * 3_600_000,
  deadlineMsMax: 30 * 24 * 3_600_000,
} as const;
