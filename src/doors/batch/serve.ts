/** The batch door on a node. */
import { mkdir } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import type { Metrics, OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { printedByResult } from "#worker/follow/printed-by-result.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import type { BatchConfig } from "./config.ts";
import { openBuckets } from "./grants/buckets.ts";
import { Objects } from "./grants/objects.ts";
import { ContentDigests } from "./memo/identity.ts";
import { memoPublisher } from "./memo/memo.ts";
import { door, engineLabel, planLabel, taskLabel } from "./plan.ts";
import { BatchMetrics } from "./metrics.ts";
import { batchRoutes } from "./routes.ts";
import { batchPlanners, batchRunners } from "./run.ts";
import { callBoxes } from "./run/map/call-box.ts";
import { Memory } from "./run/memory.ts";
import { Engines } from "./run/engines.ts";

const MiB = 1024 * 1024;

/** Runs nothing, with a line in the log, where the engine is not there. */
export async function openBatch(
  { node, place, clock, random, vault, stored, client, dataFolder, log, warn, counts }: DoorPorts,
  { packsMax, taskMemory, recognise, inputs }: BatchConfig,
): Promise<OpenDoor> {
  const routes = batchRoutes({ client });
  const metrics = new BatchMetrics();
  const printed = { [door]: printedByResult(stored.blobs) };
  const told = { printed, observer: metrics, metrics: (all: Metrics) => metrics.bind(all) };
  const { store, index } = stored.counted("batch");
  const publishers = { [door]: memoPublisher(index, () => counts.publicationRefused(door)) };
  if (!place) return { routes, publishers, ...told };
  if (!isEngineThere()) {
    log("queries are not run here: the npm package @duckdb/node-api is not installed for this platform");
    return { routes, publishers, ...told };
  }
  const home = join(dataFolder, "batch");
  await mkdir(home, { recursive: true, mode: 0o700 });
  const files = await LinkCache.open({ folder: join(home, "packs"), bytesMax: packsMax });
  const engines = new Engines({ clock, enginesMax: place.slots });
  const memoryBytesMax = Math.floor(totalmem() * 0.6);
  const openBucket = openBuckets({ clock, random, vault });
  const ports = {
    node,
    grants: inputs,
    openBucket,
    objects: await Objects.open({ folder: join(home, "objects"), bytesMax: packsMax, open: openBucket }),
    isBoxed: place.boxed !== undefined,
    blobs: stored.blobs,
    // Where parts can be read, there is a tier that packs travel to and from.
    packForm: stored.blobs.part && ("zstd" as const),
    store,
    engines,
    files,
    scratch: place.scratch,
    memoryBytes: taskMemory ?? Math.max(256 * MiB, Math.floor(memoryBytesMax / place.slots)),
    memory: new Memory(memoryBytesMax),
    spillBytes: packsMax,
    memo: {
      index,
      looked: (tenant: string, outcome: "hit" | "miss") => counts.looked("batch", tenant, outcome),
      contents: recognise === "content" ? new ContentDigests(engines) : undefined,
    },
    warn,
    counts: metrics,
    nowMs: () => clock.monotonicMs(),
    callBox: callBoxes(place),
    live: place.live,
    // Refused: it is being made again, or the job is over. Who asks fails for its lost input either way.
    invalidate: async (taskId: string, generation: number, reason: string) =>
      await client.invalidate(taskId, generation, reason).catch((error: unknown) => {
        if (!isRejected(error)) throw error;
        return error.rejection.kind === "generation-stale" ? error.rejection.current : undefined;
      }),
  };
  return {
    labels: [taskLabel, planLabel, engineLabel],
    runners: batchRunners(ports),
    planners: batchPlanners(ports),
    routes,
    publishers,
    ...told,
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
