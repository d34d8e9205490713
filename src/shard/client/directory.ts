import type { History, Journal } from "#journal/journal.ts";

/** What is known of the cluster without asking a shard. A Journal is one; a node offers one over the wire. */
export type Directory = Pick<Journal, "cluster" | "nodes" | "ownerships"> & {
  readonly history: Pick<History, "job" | "jobs">;
};
