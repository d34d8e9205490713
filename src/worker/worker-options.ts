/** What a worker is given: its limits, and everything it talks to. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { ExecutorClient } from "#shard/client/executor.ts";
import type { AttemptPorts } from "./attempt.ts";
import type { Planners, Resume, Runners } from "./runner.ts";
import type { WorkSources } from "#worker/visits/sources.ts";

export type WorkerOptions = {
  /** Attempts at once. */
  readonly slots: number;
  /** Stages that are planned at once, beside the slots; 0: planning takes slots. */
  readonly planners: number;
  /** With at most so many shards, requests are held at each; with more, nodes say which have work (ADR 0022). */
  readonly heldShardsMax: number;
  /** Shards with work that are asked for it at once. */
  readonly pollersMax: number;
  /** Claims that are taken ahead of free slots, at most: as many as short attempts use up in a moment. */
  readonly aheadMax: number;
  /** How long a shard or a node may hold a request for work. */
  readonly pollMs: number;
  /** How often one that is busy asks another node whether there is work besides. */
  readonly lookMs: number;
  readonly stopMsMax: number;
  /**
   * How long the worker retries to report an attempt's end to a shard that does not answer; the slot is free meanwhile.
   */
  readonly tellMsMax: number;
};

export const workerDefaults: WorkerOptions = {
  slots: 4,
  planners: 2,
  heldShardsMax: 8,
  pollersMax: 8,
  aheadMax: 128,
  pollMs: 10_000,
  lookMs: 250,
  stopMsMax: 10_000,
  tellMsMax: 600_000,
};

export type WorkerPorts = {
  readonly client: ExecutorClient;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Identifies this worker to shards. After a restart under the same name, its old claims are released at once. */
  readonly executor: string;
  /** Labels (`name=value`) that the worker offers. */
  readonly offers: readonly string[];
  readonly shards: number;
  /** The nodes that are asked which shards have work, where there are too many to hold a request at each. */
  readonly sources: WorkSources;
  readonly runners: Runners;
  readonly planners: Planners;
  /** What tasks may call nodes with; left out: nothing. */
  readonly access?: AttemptPorts["access"];
  /** Tasks that an earlier process of this worker started and that still run. */
  readonly resumes?: readonly Resume[];
  readonly options?: Partial<WorkerOptions>;
  readonly log?: (line: string) => void;
};
