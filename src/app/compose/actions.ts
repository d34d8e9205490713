/** What a node needs to run actions of builds: a sandbox, files to link inputs from, and a folder for both. */
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import type { Streams } from "#blobs/streams.ts";
import { ActionCacheService } from "#doors/build/cache/action-cache.ts";
import { buildPlanners } from "#doors/build/builds/plan-stage.ts";
import { stepRunners } from "#doors/build/builds/run-step.ts";
import { actionRunner, type ActionPorts } from "#doors/build/run.ts";
import { Resumable } from "#doors/build/run/resume.ts";
import { sharedRunner, type SharingPorts } from "#doors/build/run/shared.ts";
import { actionKind } from "#doors/build/plan.ts";
import { buildSettingsDefault } from "#doors/build/settings.ts";
import type { TenantTrees } from "#doors/build/cache/tenant-trees.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";
import type { Seen } from "#doors/build/why/seen.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { Planners, Resume, Runners } from "#worker/runner.ts";
import { createSpawnedRunner } from "#worker/spawned-runner.ts";
import type { ProcessRunner } from "#worker/process.ts";
import { removeMarked } from "#worker/live-output.ts";
import { Sandbox, type SandboxAbout } from "#worker/sandbox/sandbox.ts";
import type { TaskCallers } from "#worker/sandbox/task-callers.ts";
import { KeptFolders } from "#worker/stage/kept-folders.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import { Tools, type ToolCounts, type ToolsPorts } from "#worker/tool/tools.ts";
import { actionsHome, leaveHome } from "#app/node/actions-home.ts";
import { executionSettings } from "./build.ts";
import type { Config } from "#app/config/config.ts";
import { defaultDataPath, type DataFolder } from "#app/node/data-folder.ts";
import { hiddenPaths } from "#app/node/hidden-paths.ts";

export type ActionParts = {
  readonly name: string;
  readonly store: Store;
  readonly index: ActionIndex;
  readonly trees: TenantTrees;
  readonly streams: Streams | undefined;
  /** Remembers what missed, the same as for calls. */
  readonly seen: Seen;
  /** Where nodes say which actions they run. */
  readonly deskFor: SharingPorts["deskFor"];
  readonly clock: Clock;
  /** Where the configuration came from, if from a file. */
  readonly configFile?: string | undefined;
  /** Follows what is run, for metrics and traces. */
  readonly watch?: ActionPorts["watch"];
  readonly log: (line: string) => void;
};

export type Actions = {
  readonly runners: Runners;
  readonly planners: Planners;
  /** What an earlier life of this node began. */
  readonly resumes: readonly Resume[];
  readonly about: SandboxAbout;
  /** Knows which callers on this machine are actions that run here. */
  readonly callers: TaskCallers;
  /** Runs commands without a sandbox, from the same launcher. */
  readonly processes: ProcessRunner;
  /** Undefined where none stays. */
  readonly tools: () => ToolCounts | undefined;
  close(): Promise<void>;
};

/** Undefined, with a word in the log, where actions cannot be run. */
export async function openActions(
  config: Config,
  folder: DataFolder,
  parts: ActionParts,
): Promise<Actions | undefined> {
  const { log } = parts;
  if (process.platform !== "linux" || !config.worker.enabled) return undefined;
  // Elsewhere what a job's result names and what a tenant's cache holds are kept apart.
  if (config.blobs.kind !== "disk") {
    log(`actions of builds are not run here: that needs blobs of kind disk, not ${config.blobs.kind}`);
    return undefined;
  }
  try {
    return await open(config, folder, parts);
  } catch (error) {
    if (!isFault(error)) throw error;
    log(`actions of builds are not run here: ${error.message}`);
    return undefined;
  }
}

async function open(config: Config, folder: DataFolder, parts: ActionParts): Promise<Actions> {
  const { name, store, trees, streams, clock, log } = parts;
  const { slots, actionsIn, inputsMax, printedMax, processesMax, toolsMax } = config.worker;
  const home = actionsHome(actionsIn, folder.path);
  await using undo = new AsyncDisposableStack();
  undo.defer(() => leaveHome(home, actionsIn, folder.path));
  const sandbox = undo.use(
    await Sandbox.open({
      home,
      socket: join(home, "sock"),
      // One that stays keeps its lane, and takes no action's.
      lanes: slots + toolsMax,
      toolLanes: toolsMax,
      ownLanes: slots,
      clock,
      log,
      // The usual folder may be another node's, of the same user.
      hidden: [...hiddenPaths(config, folder, parts.configFile), defaultDataPath(process.env)],
      isolation: { want: config.worker.sandbox },
      freeBytesMin: config.worker.diskFreeMin,
      memoryBytesMax: config.worker.memoryMax,
    }),
  );
  const resumable = new Resumable(sandbox);
  await sandbox.keepOnly(resumable.runs, async (path) => {
    if (streams) await removeMarked(streams, path);
  });
  const links = await LinkCache.open({ folder: join(home, "inputs"), bytesMax: inputsMax });
  const kept = await KeptFolders.open({ folder: join(home, "kept"), bytesMax: inputsMax / 4, log });
  const { about } = sandbox;
  log(`actions run in: ${about.kind}, users ${about.users}, network ${about.network}, groups ${about.groups}`);
  for (const what of about.missing) log(`actions do without ${what}`);
  const limits = { printedBytesMax: printedMax, pidsMax: processesMax };
  const processes = createSpawnedRunner(sandbox.unboxed);
  const tools = openTools(config, { sandbox, processes, clock, log });
  if (tools) undo.use(tools);
  const made = { store, sandbox, trees, links, kept, tools, worker: name, resumable, streams };
  const owned = undo.move();
  return {
    ...workOf(config, { ...made, watch: parts.watch, ...limits }, parts),
    resumes: resumable.resumes,
    processes,
    tools: () => tools?.counts,
    about,
    callers: sandbox.callers,
    close: () => owned.disposeAsync(),
  };
}

/** Undefined where none can stay: they have to be stopped for a moment while somebody is in their folder. */
function openTools({ worker: { toolsMax, toolIdle } }: Config, ports: ToolsPorts): Tools | undefined {
  if (toolsMax === 0) return undefined;
  if (ports.sandbox.canFreeze) return new Tools(ports, { toolsMax, idleMs: toolIdle });
  ports.log("actions do without tools that stay: that needs control groups that can be frozen");
  return undefined;
}

/** Single actions, and those of builds, which are looked for in the cache by whoever takes them. */
function workOf(config: Config, ports: ActionPorts, { store, index, seen, deskFor, clock, log }: ActionParts) {
  const isUnderWay = (task: Granted): boolean => ports.resumable?.knows(task) === true;
  const run = sharedRunner(actionRunner(ports), { clock, deskFor, isUnderWay });
  const report = (doing: string, error: unknown): void => log(`${doing}: ${String(error)}`);
  const cache = { store, index, clock, seen, report, settings: buildSettingsDefault };
  const results = new ActionCacheService(cache, new TrustRules(index));
  const settings = executionSettings(config.build, config.worker.labels);
  return {
    runners: { [actionKind]: run, ...stepRunners({ store, results, run, seen }) },
    planners: buildPlanners({ store, settings }),
  };
}
