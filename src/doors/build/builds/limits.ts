/** How much of everything one build may have. */
export const buildLimits = {
  /** A view of a job shows no more tasks than ten thousand, and planning is one, too. */
  actionsMax: 8_000,
  /** As many stages as a job may have. */
  groupsMax: 1_000,
  /** Actions that are planned at once. */
  groupActionsMax: 1_000,
  inputsMax: 200_000,
  /** Of small files that are given with the build, together. */
  contentsBytesMax: 4 * 1024 * 1024,
  /** Of the whole, in its bytes on the wire. */
  buildBytesMax: 16 * 1024 * 1024,
  /** Of one as a document: to read and check that costs many times as much. */
  documentBytesMax: 8 * 1024 * 1024,
  nameLengthMax: 150,
  keyLengthMax: 200,
  requestIdLengthMax: 128,
  deadlineMsDefault: 24 * 3_600_000,
  deadlineMsMax: 30 * 24 * 3_600_000,
} as const;
