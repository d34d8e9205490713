/** What a worker is given: its limits, and everything it talks to. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { ExecutorClient } from "#shard/client/executor.ts";
import type { Planners, Resume, Runners } from "./runner.ts";
import type { WorkSources } from "./sources.ts";

export type WorkerOptions = {
  /** Attempts at once. */
  readonly slots: number;
  /** Shards that are asked for work at once. */
  readonly pollersMax: number;
  /** How long a shard may hold a request for work; shorter when there are more shards than can be asked at once. */
  readonly pollMs: number;
  readonly sweepMs: number;
  /** How often one that is busy asks another node whether there is work besides. */
  readonly lookMs: number;
  readonly stopMsMax: number;
  /** How long an ending is offered to a shard that does not answer; the attempt's slot is free meanwhile. */
  readonly tellMsMax: number;
};

export const workerDefaults: WorkerOptions = {
  slots: 4,
  pollersMax: 8,
  pollMs: 10_000,
  sweepMs: 2_000,
  lookMs: 250,
  stopMsMax: 10_000,
  tellMsMax: 600_000,
};

export type WorkerPorts = {
  readonly client: ExecutorClient;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Names this worker to shards. After a restart under the same name its old claims are given back at once. */
  readonly executor: string;
  /** Labels (`name=value`) that it offers. */
  readonly offers: readonly string[];
  readonly shards: number;
  /** Where word of work is heard when there are more shards than can be asked at once. Left out: they are visited. */
  readonly sources?: WorkSources;
  readonly runners: Runners;
  readonly planners: Planners;
  /** What an earlier life of this worker began, and is under way still. */
  readonly resumes?: readonly Resume[];
  readonly options?: Partial<WorkerOptions>;
  readonly log?: (line: string) => void;
};
