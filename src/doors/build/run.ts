/**
 * What a worker does for an action: stage inputs, run the command, collect outputs. Everything that the action itself
 * does ends in a result; only a failure of this machine is a failure, and is retried.
 */
import { Fault } from "#base/fault.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import type { Streams } from "#blobs/streams.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { Command } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { AttemptWatch, WatchedAttempt } from "#worker/attempt-watch.ts";
import { leasesOf } from "#worker/holding.ts";
import { LiveOutput } from "#worker/printed/live-output.ts";
import { cappedFileHead } from "#worker/printed/printed-head.ts";
import { requestedOutputs } from "#worker/outputs/collect.ts";
import type { EndReason } from "#worker/process/protocol.ts";
import type { RunContext, Runner, RunOutcome, Runners } from "#worker/runner.ts";
import { giveAccess, takeAccessBack } from "#worker/task-access-file.ts";
import type { AttemptFolder } from "#worker/sandbox/folders/attempt-folder.ts";
import type { Attempt } from "#worker/sandbox/attempt.ts";
import { folderInBox } from "#worker/sandbox/box.ts";
import type { Ran } from "#worker/sandbox/command.ts";
import type { Sandbox } from "#worker/sandbox/sandbox.ts";
import type { KeptFolders } from "#worker/stage/kept-folders.ts";
import type { LinkCache } from "#worker/stage/link-cache.ts";
import { stage } from "#worker/stage/stage.ts";
import type { Tools } from "#worker/tool/tools.ts";
import { withEmpty } from "./cache/empty-blobs.ts";
import { readAction, type ReadAction } from "./execute/execution-inputs.ts";
import { actionKind, readSpec, type ActionSpec } from "./plan.ts";
import { storeAnswer, type Made } from "./run/answer.ts";
import { collectAll } from "./run/collect.ts";
import { refusalOf } from "./run/refusal.ts";
import { keptText, type Resumable, type Resumed } from "./run/resume.ts";
import { Times } from "./run/times.ts";
import { runByTool, type ToolNote } from "./run/tool.ts";
import { usageOf } from "./run/usage.ts";
import type { TenantTrees } from "./cache/tenant-trees.ts";

export type ActionPorts = {
  readonly store: Store;
  readonly sandbox: Sandbox;
  readonly trees: TenantTrees;
  readonly links: LinkCache;
  /** Folders of inputs that are reused, if they can be kept. */
  readonly kept?: KeptFolders | undefined;
  /** The name of this machine in results. */
  readonly worker: string;
  /** For each of the two output streams of a command. */
  readonly printedBytesMax: number;
  /** Processes and threads of one action at once. */
  readonly pidsMax: number;
  /** Persistent tools, if they can be kept. */
  readonly tools?: Tools | undefined;
  readonly watch?: AttemptWatch | undefined;
  /** Actions that an earlier process of this node started. */
  readonly resumable?: Resumable | undefined;
  /** Where the output of actions can be read while they run; left out: nowhere. */
  readonly streams?: Streams | undefined;
};

export function actionRunner(ports: ActionPorts): Runner {
  const runner = async (context: RunContext): Promise<RunOutcome> => {
    const run = new ActionRun(context, ports);
    try {
      return await run.run();
    } finally {
      run.ended();
    }
  };
  // Inputs are staged while the claim is being confirmed.
  return Object.assign(runner, { prepares: true });
}

export const actionRunners = (ports: ActionPorts): Runners => ({ [actionKind]: actionRunner(ports) });

const symlinks = { absoluteLinks: "allowed" } as const;

/** Where inputs are staged, and which attempt owns them. */
export type StageInto = Pick<Attempt, "folder" | "lane">;

/** Inputs of earlier actions: kept, and in the root already. */
type Reused = Pick<ActionPorts, "kept"> & Partial<Pick<Attempt, "left">>;

class ActionRun {
  readonly #context: RunContext;
  readonly #ports: ActionPorts;
  readonly #spec: ActionSpec;
  readonly #blobs: BlobStore;
  readonly #times: Times;
  readonly #watched: WatchedAttempt | undefined;
  /** Why it is run without the tool that it names. */
  #withoutTool: ToolNote | undefined;

  constructor(context: RunContext, ports: ActionPorts) {
    const spec = readSpec(context.task.spec);
    if (!spec) throw new Fault("invalid", "run action", { task: context.task.taskId, why: "no action is named" });
    this.#context = context;
    this.#ports = ports;
    this.#spec = spec;
    const { blobs } = ports.store.forTenant(context.task.tenant);
    this.#watched = ports.watch?.begin(context.task, blobs);
    this.#blobs = withEmpty(this.#watched?.blobs ?? blobs);
    this.#times = new Times(context.clock, spec.queuedAtMs);
  }

  ended(): void {
    this.#times.mark("workerCompleted");
    this.#watched?.ended(this.#times.soFar);
  }

  async run(): Promise<RunOutcome> {
    const { signal } = this.#context;
    try {
      const read = await readAction(this.#spec.action, this.#spec.fn, this.#blobs);
      const resumed = await this.#resumed();
      const byTool = resumed ? undefined : await this.#askTool(read);
      if (byTool) return byTool;
      const attempt = resumed?.attempt ?? (await this.#ports.sandbox.attempt(signal));
      return await this.#within(attempt, async () => {
        if (!resumed) attempt.staged(await this.#stage(read, attempt, { kept: this.#ports.kept, left: attempt.left }));
        await this.#context.started?.();
        const running = resumed ? this.#resume(resumed) : this.#execute(read.command, attempt);
        const ran = await this.#ended(running, this.#live(attempt));
        if (this.#spec.credential) await takeAccessBack(attempt.folder.root);
        const again = this.#again(ran);
        if (again) return again;
        const made = await this.#collect(read.command, attempt.folder, ran, this.#withoutTool);
        const [outcome] = await Promise.all([this.#done(made), Promise.try(() => attempt.leaveInputs())]);
        return outcome;
      });
    } catch (error) {
      signal.throwIfAborted();
      const status = refusalOf(error);
      if (!status) throw error;
      return await this.#done({ status, message: "", result: undefined, digests: [] });
    }
  }

  /** Taken over only once the claim is confirmed; otherwise its keeper ends it. */
  async #resumed(): Promise<Resumed | undefined> {
    const { resumable } = this.#ports;
    const { task, started } = this.#context;
    if (!resumable?.knows(task)) return undefined;
    await started?.();
    return resumable.take(task);
  }

  /**
   * The lane is free for others at once. Files stay until the result is reported: a later process could not report it
   * without them.
   */
  async #within(attempt: Attempt, work: () => Promise<RunOutcome>): Promise<RunOutcome> {
    try {
      const outcome = await work();
      if (this.#context.afterwards) this.#context.afterwards(() => attempt.forget());
      else attempt.forget();
      return outcome;
    } catch (error) {
      attempt.forget();
      throw error;
    } finally {
      attempt.lane[Symbol.dispose]();
    }
  }

  /** Undefined, with a note for the result, when it must be run as any other action. */
  async #askTool(read: ReadAction): Promise<RunOutcome | undefined> {
    const { tools, trees, sandbox, printedBytesMax, pidsMax } = this.#ports;
    const { task, signal, started } = this.#context;
    // After a failed attempt the tool is not tried again.
    if (!tools || !this.#spec.tool || task.attempt > 1) return undefined;
    const known = { tools, printedBytesMax, pidsMax, signal, symlinks, blobs: this.#blobs, spec: this.#spec };
    const outcome = await runByTool(read, {
      ...known,
      tenant: task.tenant,
      trees: trees.forTenant(task.tenant),
      sandbox: sandbox.about.kind,
      // A file that the tool has open could not be taken away from it.
      stage: async (into) => void (await this.#stage(read, into, {})),
      begin: async () => {
        await started?.();
        this.#times.mark("executionStart");
      },
      collect: (folder, ran, tool) => {
        this.#times.mark("executionCompleted");
        return this.#collect(read.command, folder, ran, tool);
      },
      done: (made) => this.#done(made),
    });
    if (!("why" in outcome)) return outcome;
    this.#withoutTool = { without: outcome.why };
    return undefined;
  }

  async #stage({ command, inputRoot }: ReadAction, { folder, lane }: StageInto, { kept, left }: Reused) {
    const { trees, links } = this.#ports;
    this.#times.mark("inputFetchStart");
    const staged = await stage(
      {
        inputRoot,
        digestFunction: this.#spec.fn,
        workingDirectory: command.workingDirectory,
        outputs: requestedOutputs(command).map(({ path }) => path),
        symlinks,
      },
      { root: folder.root, uid: lane.uid, files: lane.uid === undefined ? "copy" : "link", left },
      { trees: trees.forTenant(this.#context.task.tenant), links, blobs: this.#blobs, kept },
    );
    this.#times.mark("inputFetchCompleted");
    return staged.inputs;
  }

  async #execute(command: Command, attempt: Attempt): Promise<Ran> {
    const { task, signal } = this.#context;
    const { pidsMax, printedBytesMax } = this.#ports;
    const { memoryBytes, cpus, timeoutMs, network } = this.#spec;
    const access = this.#spec.credential ? await this.#access(attempt) : {};
    this.#times.mark("executionStart");
    return await attempt.run(
      {
        tag: task.taskId,
        argv: command.arguments,
        env: { ...Object.fromEntries(command.environmentVariables.map(({ name, value }) => [name, value])), ...access },
        workingDirectory: command.workingDirectory,
        network,
        limits: { memoryBytes: hasRunOutOfMemory(task) ? memoryBytes * 2 : memoryBytes, cpus, pids: pidsMax },
        timeoutMs,
        ...leasesOf(task),
        outputBytesMax: printedBytesMax,
        note: keptText(task, this.#times),
      },
      signal,
    );
  }

  async #access({ folder: { root }, lane: { uid } }: Attempt): Promise<Readonly<Record<string, string>>> {
    const isBoxed = this.#ports.sandbox.about.kind === "bubblewrap";
    const given = await giveAccess(this.#context, root, { uid, ...(isBoxed && { seenAs: folderInBox("") }) });
    if (given["MILLRACE_SERVER"] !== undefined) return given;
    throw new Fault("unavailable", "give a task its token", {
      why: "this node gives none: it has no port, or no keys",
    });
  }

  async #resume({ attempt, running, soFar }: Resumed): Promise<Ran> {
    this.#times.recall(soFar);
    return await attempt.follow(running, this.#context.signal);
  }

  /** Its output can be read while it runs; that is not needed any more once its result is known. */
  #live({ folder }: Attempt): LiveOutput | undefined {
    const { streams, printedBytesMax } = this.#ports;
    const { task, clock, afterwards } = this.#context;
    if (!streams) return undefined;
    const { tenant, taskId, token } = task;
    const { path: markIn, stdout, stderr } = folder;
    const sources = {
      stdout: cappedFileHead(stdout, printedBytesMax),
      stderr: cappedFileHead(stderr, printedBytesMax),
    };
    const live = new LiveOutput({ streams, clock }, { tenant, task: taskId, token }, sources, { markIn });
    afterwards?.(() => void live.remove().catch(() => {}));
    return live;
  }

  async #ended(running: Promise<Ran>, live: LiveOutput | undefined): Promise<Ran> {
    const { signal } = this.#context;
    const ran = await running.finally(() => this.#times.mark("executionCompleted"));
    await live?.stop();
    signal.throwIfAborted();
    if (!actionEnds.has(ran.why)) throw new Fault("unavailable", "run command", { why: ran.message ?? ran.why });
    return ran;
  }

  /** A failure that may be this machine's fault, or a neighbour's, is retried once before it is reported. */
  #again({ outOfMemory, why, message = why }: Ran): RunOutcome | undefined {
    const { task } = this.#context;
    if (outOfMemory) {
      if (hasRunOutOfMemory(task)) return undefined;
      // Idle tools may have been in its way.
      this.#ports.tools?.endIdle();
      return { kind: "failed", reason: "out-of-memory", message };
    }
    return task.attempt > 1 || ownEnds.has(why) ? undefined : { kind: "failed", reason: "executor-lost", message };
  }

  async #collect(command: Command, folder: AttemptFolder, ran: Ran, tool: ToolNote | undefined): Promise<Made> {
    const { sandbox, worker } = this.#ports;
    const { fn, timeoutMs } = this.#spec;
    this.#times.mark("outputUploadStart");
    const found = await collectAll({ command, folder, ran, fn, timeoutMs, symlinks, sandbox, blobs: this.#blobs });
    this.#times.mark("outputUploadCompleted");
    this.#times.mark("workerCompleted");
    const executionMetadata = {
      worker,
      ...this.#times.timestamps,
      virtualExecutionDuration: durationOf(ran.ranMs),
      auxiliaryMetadata: [usageOf(ran, sandbox.about, tool)],
    };
    const { result, status, digests } = found;
    const message = messageOf(ran, this.#context, worker);
    return { status, message, result: { ...result, executionMetadata }, digests };
  }

  #done(made: Made): Promise<RunOutcome> {
    return storeAnswer(made, { task: this.#context.task, spec: this.#spec, blobs: this.#blobs });
  }
}

/** Then it gets twice the memory. Older shards do not count: there, any second attempt gets it. */
const hasRunOutOfMemory = ({ outOfMemory, attempt }: Granted): boolean =>
  outOfMemory === undefined ? attempt > 1 : outOfMemory > 0;

/** Ends that say something about the command itself. */
const ownEnds: ReadonlySet<EndReason> = new Set(["exited", "timed-out"]);
/** These as well, if they happen a second time: the command fills disks, or kills its worker's processes. */
const actionEnds: ReadonlySet<EndReason> = new Set([...ownEnds, "disk-full", "lane-lost"]);

const durationOf = (ms: number) => ({ seconds: Math.floor(ms / 1_000), nanos: Math.floor((ms % 1_000) * 1e6) });

/** For people, when something went wrong. */
function messageOf({ exitCode, message, sandbox }: Ran, { task }: RunContext, worker: string): string {
  if (exitCode === 0 && message === undefined) return "";
  const why = message === undefined ? "" : `${message}; `;
  return `${why}job ${task.jobId} on ${worker}, sandbox: ${sandbox}`;
}
