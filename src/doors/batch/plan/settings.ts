/** By how much a query is cut. Part of the job, so that planning again gives the same stages. */
export type CutSettings = {
  /** A source is read in pieces of about this size; a query over less than that is one task. */
  readonly splitBytes: number;
  /** What is smaller is given to every task whole instead of being partitioned. */
  readonly broadcastBytes: number;
  /** Into how many partitions rows are hashed; 0: by the size of the sources. */
  readonly partitions: number;
  /** A task reads so many bytes of partitions that have been written, or one partition. */
  readonly reduceBytes: number;
};

const MiB = 1024 * 1024;

export const cutDefaults: CutSettings = {
  splitBytes: 64 * MiB,
  broadcastBytes: 10 * MiB,
  partitions: 0,
  reduceBytes: 64 * MiB,
};

export const partitionsMax = 64;

export function partitionsOf({ partitions, reduceBytes }: CutSettings, sourceBytes: number): number {
  if (partitions > 0) return Math.min(partitions, partitionsMax);
  return Math.max(2, Math.min(partitionsMax, Math.ceil(sourceBytes / reduceBytes)));
}
