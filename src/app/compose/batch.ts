/** What a node needs to run queries: engines, packs as files, and a folder for both. */
import { mkdir } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import type { Store } from "#blobs/store.ts";
import { engineLabel, planLabel, taskLabel } from "#doors/batch/plan.ts";
import { batchPlanners, batchRunners } from "#doors/batch/run.ts";
import { Engines } from "#doors/batch/run/engines.ts";
import type { Planners, Runners } from "#worker/runner.ts";
import { reclaimScratch, ScratchDir } from "#worker/scratch.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import type { Config } from "#app/config/config.ts";
import type { DataFolder } from "#app/node/data-folder.ts";

export type Batch = {
  readonly runners: Runners;
  readonly planners: Planners;
  readonly labels: readonly string[];
  close(): Promise<void>;
};

export type BatchParts = {
  readonly store: Store;
  readonly clock: Clock;
  readonly invalidate: (taskId: string, generation: number, reason: string) => Promise<void>;
  readonly log: (line: string) => void;
};

const MiB = 1024 * 1024;

/** Undefined, with a word in the log, where queries cannot be run. */
export async function openBatch(config: Config, folder: DataFolder, parts: BatchParts): Promise<Batch | undefined> {
  const { store, clock, invalidate, log } = parts;
  const { slots, inputsMax } = config.worker;
  if (!config.worker.enabled) return undefined;
  // Elsewhere what a job's result names and what a tenant's cache holds are kept apart.
  if (config.blobs.kind !== "disk") {
    log(`queries are not run here: that needs blobs of kind disk, not ${config.blobs.kind}`);
    return undefined;
  }
  if (!isEngineThere()) {
    log("queries are not run here: the npm package @duckdb/node-api is not installed for this platform");
    return undefined;
  }
  const home = join(folder.path, "batch");
  const scratch = join(home, "tasks");
  await mkdir(home, { recursive: true, mode: 0o700 });
  await reclaimScratch(scratch);
  const files = await LinkCache.open({ folder: join(home, "packs"), bytesMax: inputsMax });
  const engines = new Engines({ clock, enginesMax: slots });
  const memoryBytesMax = Math.floor(totalmem() * 0.6);
  const ports = {
    store,
    engines,
    files,
    scratch: (name: string) => ScratchDir.create(scratch, name),
    clock,
    memoryBytes: Math.max(256 * MiB, Math.floor(memoryBytesMax / Math.max(1, slots))),
    memoryBytesMax,
    spillBytes: inputsMax,
    invalidate,
  };
  return {
    runners: batchRunners(ports),
    planners: batchPlanners(ports),
    labels: [taskLabel, planLabel, engineLabel],
    close: () => engines[Symbol.asyncDispose](),
  };
}

function isEngineThere(): boolean {
  try {
    import.meta.resolve("@duckdb/node-api");
    return true;
  } catch {
    return false;
  }
}
