/** The worker of a node: what it runs, where, and what commands may see of this process. */
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { BlobStore } from "#blobs/store.ts";
import { shellPlanners, shellRunners } from "#doors/shell/run.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Planners, Resume, Runners } from "#worker/runner.ts";
import { createProcessRunner, type ProcessRunner } from "#worker/process.ts";
import { Spawner } from "#worker/process/spawner.ts";
import { attemptsIn, reclaimAttempts } from "#worker/sandbox/folders/attempt-folder.ts";
import { reclaimScratch, ScratchDir } from "#worker/scratch.ts";
import type { WorkSources } from "#worker/sources.ts";
import { createSpawnedRunner, endFound } from "#worker/spawned-runner.ts";
import { createWorker, type Worker } from "#worker/worker.ts";
import type { Config } from "#app/config/config.ts";
import type { DataFolder } from "#app/node/data-folder.ts";
import { ownPlanners, ownRunners } from "#app/work/own-work.ts";

type WorkerParts = {
  readonly name: string;
  readonly client: WorkClient;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly labels: readonly string[];
  readonly shards: number;
  readonly sources: WorkSources;
  /** What it runs and plans besides the shell's work. */
  readonly runners: Runners;
  readonly planners: Planners;
  readonly resumes: readonly Resume[];
  /** Runs commands; left out: a launcher of its own does. */
  readonly processes: ProcessRunner | undefined;
  readonly log: (line: string) => void;
};

export async function startWorker(config: Config, folder: DataFolder, parts: WorkerParts): Promise<Worker> {
  const { name, client, blobs, clock, random, labels, shards, sources, runners, planners, resumes, log } = parts;
  const processes = parts.processes
    ? { run: parts.processes, close: async () => {} }
    : await openProcesses(config, folder, { clock, log });
  // Nothing of an earlier life runs any more.
  await reclaimScratch(folder.scratch);
  const worker = createWorker({
    client,
    blobs,
    clock,
    random: random.fork("worker"),
    executor: name,
    offers: labels,
    shards,
    sources,
    runners: ownRunners({
      ...runners,
      ...shellRunners({
        scratch: (task) => ScratchDir.create(folder.scratch, task),
        processes: processes.run,
        env: plainEnvironment(process.env),
      }),
    }),
    planners: ownPlanners({ ...planners, ...shellPlanners }),
    resumes,
    options: { slots: config.worker.slots },
    log,
  });
  worker.run(new AbortController().signal).catch((error: unknown) => log(`worker: ${String(error)}`));
  const drain = async (forMs: number): Promise<void> => {
    await worker.drain(forMs);
    await processes.close();
  };
  return {
    run: (signal) => worker.run(signal),
    hold: () => worker.hold(),
    resume: () => worker.resume(),
    giveBack: () => worker.giveBack(),
    status: () => worker.status(),
    drain,
  };
}

type Processes = { readonly run: ProcessRunner; close(): Promise<void> };

/** Starting a process from this one stops it for milliseconds, the longer the larger it is: a launcher does it. */
async function openProcesses(
  config: Config,
  folder: DataFolder,
  { clock, log }: Pick<WorkerParts, "clock" | "log">,
): Promise<Processes> {
  const direct = { run: createProcessRunner(clock), close: async () => {} };
  if (process.platform === "win32") return direct;
  const home = join(folder.path, "launcher");
  try {
    const options = { home, socket: join(home, "sock"), lanes: config.worker.slots, clock, log };
    const spawner = await Spawner.open(options);
    await endFound(spawner);
    await reclaimAttempts(home, new Set());
    const run = createSpawnedRunner({ spawner, lanes: spawner.lanes, folder: attemptsIn(home), clock });
    return { run, close: () => spawner.close({ quit: true }) };
  } catch (error) {
    if (!isFault(error)) throw error;
    log(`processes are started from this one: ${error.message}`);
    return direct;
  }
}

const passedOn = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "SYSTEMROOT", "COMSPEC", "PATHEXT"];

/** What commands may see of this process's environment: nothing that could be a secret. */
const plainEnvironment = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([key, value]) =>
      value !== undefined && (passedOn.includes(key.toUpperCase()) || key.startsWith("LC_")) ? [[key, value]] : [],
    ),
  );
