/** The worker of a node: it runs what the doors can run. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { KindTable } from "#shard/door-kinds.ts";
import type { WorkSources } from "#worker/visits/sources.ts";
import type { WorkerPorts } from "#worker/worker-options.ts";
import { createWorker } from "#worker/create-worker.ts";
import type { Worker } from "#worker/worker.ts";
import { ownPlanners, ownRunners } from "#app/work/own-work.ts";
import type { OpenDoors } from "./doors.ts";

type WorkerParts = {
  readonly name: string;
  readonly client: WorkClient;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly labels: readonly string[];
  readonly slots: number;
  readonly planners: number;
  readonly shards: number;
  readonly sources: WorkSources;
  readonly doors: Pick<OpenDoors, "runners" | "planners" | "resumes">;
  readonly kinds: KindTable;
  readonly access: WorkerPorts["access"];
  readonly log: (line: string) => void;
};

export function startWorker(parts: WorkerParts): Worker {
  const { name, client, blobs, clock, random, labels, slots, planners, shards, sources, doors, kinds, access, log } =
    parts;
  const worker = createWorker({
    client,
    blobs,
    clock,
    random: random.fork("worker"),
    executor: name,
    offers: labels,
    shards,
    sources,
    runners: ownRunners(doors.runners, kinds),
    planners: ownPlanners(doors.planners, kinds),
    resumes: doors.resumes,
    access,
    options: { slots, planners },
    log,
  });
  worker.run(new AbortController().signal).catch((error: unknown) => log(`worker: ${String(error)}`));
  return worker;
}
