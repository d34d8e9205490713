import type { History, Journal } from "#journal/journal.ts";

/** What is known of the cluster without asking a shard. A Journal implements it; a node offers it over the network. */
export type Directory = Pick<Journal, "cluster" | "nodes" | "ownerships"> & {
  readonly history: Pick<History, "job" | "jobs" | "count">;
};
