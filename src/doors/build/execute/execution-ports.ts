/** What the execution half of this door needs besides the cache. */
import type { WorkClient } from "#shard/client/client.ts";
import type { CallTraces } from "#door/ports.ts";
import type { LiveSource } from "#worker/printed/live-source.ts";
import type { ExecutionSettings } from "./execution-settings.ts";
import type { TenantTrees } from "#doors/build/cache/tenant-trees.ts";

export type ExecutionPorts = {
  readonly client: Pick<
    WorkClient,
    "submit" | "join" | "watch" | "job" | "jobs" | "why" | "attempts" | "nodes" | "cancel" | "leave"
  >;
  readonly settings: ExecutionSettings;
  /** A cache of directories; shared with the worker of this node. */
  readonly trees: TenantTrees;
  /** This node's own executor, which is offered this node's actions first. Left out: there is none. */
  readonly here?: string | undefined;
  /** Whether any worker in the cluster runs actions. */
  readonly hasWorkers: () => boolean;
  /** Where the output of actions can be read while they run. Left out: only after they have ended. */
  readonly live?: LiveSource | undefined;
  /** Records calls as parts of traces; left out: none are. */
  readonly traces?: CallTraces | undefined;
  /** The node is leaving: waiting clients must ask another node, or again later. */
  readonly leaving?: AbortSignal;
};
