/** What the execution half of this door needs besides what the cache has. */
import type { WorkClient } from "#shard/client/client.ts";
import type { CallTraces } from "#door/ports.ts";
import type { LiveSource } from "#worker/live-source.ts";
import type { ExecutionSettings } from "./execution-settings.ts";
import type { TenantTrees } from "#doors/build/cache/tenant-trees.ts";

export type ExecutionPorts = {
  readonly client: Pick<
    WorkClient,
    "submit" | "join" | "watch" | "job" | "jobs" | "why" | "attempts" | "nodes" | "cancel" | "leave"
  >;
  readonly settings: ExecutionSettings;
  /** Directories that were read lately; shared with the worker of this node. */
  readonly trees: TenantTrees;
  /** The executor that is this node's: it is told first of what this node is given. Left out: there is none. */
  readonly here?: string | undefined;
  /** Whether anybody in the cluster runs actions at all. */
  readonly hasWorkers: () => boolean;
  /** Where what actions print can be read while they run. Left out: only when they have ended. */
  readonly live?: LiveSource | undefined;
  /** Records calls as parts of traces; left out: none are. */
  readonly traces?: CallTraces | undefined;
  /** The node is going away: those who wait are to ask another, or again later. */
  readonly leaving?: AbortSignal;
};
