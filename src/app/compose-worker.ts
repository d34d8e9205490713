/** The worker of a node: what it runs, where, and what commands may see of this process. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { BlobStore } from "#blobs/store.ts";
import { shellPlanners, shellRunners } from "#doors/shell/run.ts";
import type { WorkClient } from "#shard/client.ts";
import { createProcessRunner } from "#worker/process.ts";
import { reclaimScratch, ScratchDir } from "#worker/scratch.ts";
import { createWorker, type Worker } from "#worker/worker.ts";
import type { Config } from "./config.ts";
import type { DataFolder } from "./data-folder.ts";

type WorkerParts = {
  readonly name: string;
  readonly client: WorkClient;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly labels: readonly string[];
  readonly shards: number;
  readonly log: (line: string) => void;
};

export async function startWorker(config: Config, folder: DataFolder, parts: WorkerParts): Promise<Worker> {
  const { name, client, blobs, clock, random, labels, shards, log } = parts;
  await reclaimScratch(folder.scratch);
  const worker = createWorker({
    client,
    blobs,
    clock,
    random: random.fork("worker"),
    executor: name,
    offers: labels,
    shards,
    runners: shellRunners({
      scratch: (task) => ScratchDir.create(folder.scratch, task),
      processes: createProcessRunner(clock),
      env: plainEnvironment(process.env),
    }),
    planners: shellPlanners,
    options: { slots: config.worker.slots },
    log,
  });
  worker.run(new AbortController().signal).catch((error: unknown) => log(`worker: ${String(error)}`));
  return worker;
}

const passedOn = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "SYSTEMROOT", "COMSPEC", "PATHEXT"];

/** What commands may see of this process's environment: nothing that could be a secret. */
const plainEnvironment = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([key, value]) =>
      value !== undefined && (passedOn.includes(key.toUpperCase()) || key.startsWith("LC_")) ? [[key, value]] : [],
    ),
  );
