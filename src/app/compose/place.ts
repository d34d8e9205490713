/** Where a node runs work: a sandbox with what is kept for it, a launcher for plain commands, folders for both. */
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Boxed, WorkPlace } from "#door/ports.ts";
import { reclaimMarked } from "#worker/printed/live-output.ts";
import { createProcessRunner, type ProcessRunner } from "#worker/process.ts";
import { Spawner } from "#worker/process/spawner.ts";
import { attemptsIn, reclaimAttempts } from "#worker/sandbox/folders/attempt-folder.ts";
import { Sandbox, type FoundRun } from "#worker/sandbox/sandbox.ts";
import { reclaimScratch, ScratchDir } from "#worker/scratch.ts";
import { createSpawnedRunner, endFound } from "#worker/spawned-runner.ts";
import { KeptFolders } from "#worker/stage/kept-folders.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import { Tools, type ToolsPorts } from "#worker/tool/tools.ts";
import type { Door } from "#door/door.ts";
import type { Config } from "#app/config/config.ts";
import { actionsHome, leaveHome } from "#app/node/actions/actions-home.ts";
import { ownProgram } from "#app/node/actions/own-program.ts";
import { defaultDataPath, type DataFolder } from "#app/node/data-folder.ts";
import { hiddenPaths } from "#app/node/actions/hidden-paths.ts";

export type PlaceParts = {
  readonly clock: Clock;
  readonly live: WorkPlace["live"];
  /** Where the configuration came from, if from a file. */
  readonly configFile?: string | undefined;
  readonly doors: readonly Door[];
  readonly log: (line: string) => void;
};

export type Place = WorkPlace & {
  /** Ends runs of an earlier process of this node, except those that doors continue. */
  keepOnly(found: readonly FoundRun[]): Promise<void>;
  close(): Promise<void>;
};

/** Undefined if the node runs no work. */
export async function openPlace(config: Config, folder: DataFolder, parts: PlaceParts): Promise<Place | undefined> {
  if (!config.worker.enabled) return undefined;
  await using undo = new AsyncDisposableStack();
  const boxed = await openBoxed(config, folder, parts);
  if (boxed) undo.defer(() => boxed.close());
  const processes =
    boxed?.processes ??
    (await openProcesses({ home: join(folder.path, "launcher"), slots: config.worker.slots }, parts, undo));
  // No process of an earlier node process runs any more.
  await reclaimScratch(folder.scratch);
  const owned = undo.move();
  return {
    slots: config.worker.slots,
    processes,
    env: plainEnvironment(process.env),
    live: parts.live,
    printedBytesMax: config.worker.printedMax,
    scratch: (task) => ScratchDir.create(folder.scratch, task),
    boxed,
    keepOnly: async (found) => await boxed?.keepOnly(found),
    close: () => owned.disposeAsync(),
  };
}

type OpenBoxed = Boxed & Pick<Place, "keepOnly" | "close"> & { readonly processes: ProcessRunner };

/** Undefined, with a line in the log, if no sandbox is possible. */
async function openBoxed(config: Config, folder: DataFolder, parts: PlaceParts): Promise<OpenBoxed | undefined> {
  const { log } = parts;
  if (process.platform !== "linux") return undefined;
  // With other stores, blobs of jobs' results and of a tenant's cache are separate.
  if (config.blobs.kind !== "disk") {
    log(`actions of builds are not run here: that needs blobs of kind disk, not ${config.blobs.kind}`);
    return undefined;
  }
  try {
    return await openSandbox(config, folder, parts);
  } catch (error) {
    if (!isFault(error)) throw error;
    log(`actions of builds are not run here: ${error.message}`);
    return undefined;
  }
}

async function openSandbox(config: Config, folder: DataFolder, parts: PlaceParts): Promise<OpenBoxed> {
  const { live, clock, log } = parts;
  const { slots, actionsIn, inputsMax, printedMax, processesMax, toolsMax } = config.worker;
  const home = actionsHome(actionsIn, folder.path);
  await using undo = new AsyncDisposableStack();
  undo.defer(() => leaveHome(home, actionsIn, folder.path));
  const sandbox = undo.use(
    await Sandbox.open({
      home,
      socket: join(home, "sock"),
      // A tool that stays keeps its lane, in addition to those of actions.
      lanes: slots + toolsMax,
      toolLanes: toolsMax,
      ownLanes: slots,
      clock,
      log,
      // The default data folder may belong to another node of the same user.
      hidden: [...hiddenPaths(config, folder, parts), defaultDataPath(process.env)],
      shown: ownProgram(),
      isolation: { want: config.worker.sandbox },
      freeBytesMin: config.worker.diskFreeMin,
      memoryBytesMax: config.worker.memoryMax,
    }),
  );
  const links = await LinkCache.open({ folder: join(home, "inputs"), bytesMax: inputsMax });
  const kept = await KeptFolders.open({ folder: join(home, "kept"), bytesMax: inputsMax / 4, log });
  const { about } = sandbox;
  log(`actions run in: ${about.kind}, users ${about.users}, network ${about.network}, groups ${about.groups}`);
  for (const what of about.missing) log(`actions do without ${what}`);
  const processes = createSpawnedRunner(sandbox.unboxed);
  const tools = openTools(config, { sandbox, processes, clock, log });
  if (tools) undo.use(tools);
  const owned = undo.move();
  return {
    sandbox,
    links,
    kept,
    tools,
    printedBytesMax: printedMax,
    pidsMax: processesMax,
    processes,
    keepOnly: (found) =>
      sandbox.keepOnly(found, async (path) => {
        if (live) await reclaimMarked(live.streams, path, live.keeper);
      }),
    close: () => owned.disposeAsync(),
  };
}

/** Tools that run on between actions. Undefined if the sandbox cannot freeze one while other code uses its folder. */
function openTools({ worker: { toolsMax, toolIdle } }: Config, ports: ToolsPorts): Tools | undefined {
  if (toolsMax === 0) return undefined;
  if (ports.sandbox.canFreeze) return new Tools(ports, { toolsMax, idleMs: toolIdle });
  ports.log("actions do without tools that stay: that needs control groups that can be frozen");
  return undefined;
}

/** Forking this process blocks it for milliseconds, longer the larger it is: a launcher forks instead. */
export async function openProcesses(
  { home, slots }: { readonly home: string; readonly slots: number },
  { clock, live, log }: Pick<PlaceParts, "clock" | "live" | "log">,
  undo: AsyncDisposableStack,
): Promise<ProcessRunner> {
  const direct = createProcessRunner(clock);
  if (process.platform === "win32") return direct;
  try {
    const options = { home, socket: join(home, "sock"), lanes: slots, clock, log };
    const spawner = await Spawner.open(options);
    undo.defer(() => spawner.close({ quit: true }));
    await endFound(spawner);
    await reclaimAttempts(home, new Set(), async (path) => {
      if (live) await reclaimMarked(live.streams, path, live.keeper);
    });
    return createSpawnedRunner({ spawner, lanes: spawner.lanes, folder: attemptsIn(home), clock });
  } catch (error) {
    if (!isFault(error)) throw error;
    log(`processes are started from this one: ${error.message}`);
    return direct;
  }
}

const passedOn = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "SYSTEMROOT", "COMSPEC", "PATHEXT"];

/** The variables of this process that commands may see: none that could be a secret. */
export const plainEnvironment = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([key, value]) =>
      value !== undefined && (passedOn.includes(key.toUpperCase()) || key.startsWith("LC_")) ? [[key, value]] : [],
    ),
  );
