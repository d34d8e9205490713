/** What a worker does for this door's tasks and plans. */
import type { FailReason } from "#kernel/model/model.ts";
import { giveCheckpoint } from "#worker/file-checkpoint.ts";
import { leasesOf, Stopped } from "#worker/holding.ts";
import { giveAccess } from "#worker/task-access-file.ts";
import { tailLengthMax, TaskOutput, type OutputPorts } from "#worker/printed/task-output.ts";
import { politeMsOf, type ProcessResult, type ProcessRunner } from "#worker/process.ts";
import type { Planners, RunContext, RunOutcome, Runners } from "#worker/runner.ts";
import { kinds, planGate, type TaskSpec } from "./plan.ts";
import { takeSignals } from "./signals.ts";

export type ShellPorts = {
  /** A fresh folder for one attempt, gone with it. */
  readonly scratch: (name: string) => Promise<AsyncDisposable & { readonly path: string }>;
  readonly processes: ProcessRunner;
  /** What every command sees besides its own variables. */
  readonly env: Readonly<Record<string, string>>;
  /** Where output can be read while commands run; left out: it is there when they have ended. */
  readonly live?: OutputPorts | undefined;
  /** Of one command; the middle of more is left out. */
  readonly printedBytesMax: number;
};

export function shellRunners(ports: ShellPorts): Runners {
  return {
    [kinds.command]: (context) => runCommand(specOf(context, "command"), context, ports),
    [kinds.sleep]: async (context) => {
      const { ms } = specOf(context, "sleep");
      if (ms > 0) await context.clock.sleep(ms, context.signal);
      return { kind: "done", payload: JSON.stringify({ sleptMs: ms }) };
    },
    [kinds.fail]: async (context) => {
      const { reason, times } = specOf(context, "fail");
      const { attempt } = context.task;
      if (attempt > times) return { kind: "done", payload: JSON.stringify({ attempt }) };
      return {
        kind: "failed",
        reason: reason as FailReason,
        message: `failed on purpose, ${attempt} of ${times} times`,
      };
    },
  };
}

export const shellPlanners: Planners = { [kinds.gate]: (inputs) => planGate(inputs) };

/** Kept as the result of a command, for people and for the tasks behind it. */
export type CommandResult = {
  readonly exitCode: number;
  readonly tookMs: number;
  /** The digest of what it printed. */
  readonly output: string;
  readonly outputBytes: number;
  readonly tail: string;
  /** Of the claim under which it ran. */
  readonly token?: number;
};

type CommandSpec = Extract<TaskSpec, { do: "command" }>;

async function runCommand(spec: CommandSpec, context: RunContext, ports: ShellPorts): Promise<RunOutcome> {
  const { task, clock, signal, report } = context;
  await using scratch = await ports.scratch(task.taskId);
  const startedMonoMs = clock.monotonicMs();
  const name = spec.run.join(" ").slice(0, 200);
  report({ step: 1, name, status: "started" });
  const printed = new TaskOutput(context, ports.live);
  const signals = spec.signals && (await takeSignals(spec.signals, context, scratch.path));
  const access = await giveAccess(context, scratch.path);
  const checkpoint = await giveCheckpoint(context, scratch.path);
  const request = {
    command: spec.run,
    cwd: scratch.path,
    env: {
      ...ports.env,
      ...spec.env,
      ...aboutTask(context),
      ...signals?.env,
      ...access,
      ...checkpoint,
      TMPDIR: scratch.path,
    },
    outputBytesMax: ports.printedBytesMax,
    signal,
    politeMs: politeMsOf(task.stopMs),
    leases: leasesOf(task, context.leftMs),
    printing: printed.printing,
    started: signals?.started,
  };
  const ended = await ports.processes(request).catch(undefinedIfDrained);
  if (!ended) return { kind: "given-back" };
  const { exitCode, output } = ended;
  report({ step: 1, name, status: exitCode === 0 ? "succeeded" : "failed" });
  if (exitCode !== 0) return await failureOf(ended, printed);
  const { digest, outputs } = await printed.kept(output);
  const result: CommandResult = {
    exitCode,
    tookMs: Math.round(clock.monotonicMs() - startedMonoMs),
    output: digest,
    outputBytes: output.totalBytes,
    tail: output.tail(tailLengthMax),
    token: task.token,
  };
  return { kind: "done", payload: JSON.stringify(result), outputs, digests: [digest] };
}

/**
 * The worker leaves: the task is given back. The shard takes work with outside effects back only with a checkpoint of
 * this attempt, which the command may have recorded when it was asked to stop.
 */
function undefinedIfDrained(error: unknown): undefined {
  if (!(error instanceof Stopped && error.why === "drained")) throw error;
}

function failureOf({ exitCode, killedBy, output }: ProcessResult, printed: TaskOutput): Promise<RunOutcome> {
  const tail = output.tail(tailLengthMax).trim();
  // We did not stop it, or the attempt would have ended as stopped: most likely the kernel did, for lack of memory.
  const isOutOfMemory = killedBy === "SIGKILL";
  const how = isOutOfMemory
    ? "killed from outside, most likely for want of memory"
    : exitCode === undefined
      ? `killed by ${killedBy}`
      : `exit code ${exitCode}`;
  const message = tail === "" ? how : `${how}: ${tail.slice(-1_500)}`;
  return printed.failed(isOutOfMemory ? "out-of-memory" : "user-failure", message, { exitCode, output });
}

const aboutTask = ({ task }: RunContext): Record<string, string> => ({
  MILLRACE_JOB: task.jobId,
  MILLRACE_TASK: task.taskId,
  MILLRACE_STAGE: task.stageName,
  MILLRACE_INDEX: task.key,
  MILLRACE_ATTEMPT: String(task.attempt),
  ...(task.manifests && {
    MILLRACE_MANIFESTS: JSON.stringify(Object.fromEntries(task.manifests.map(({ stage, digest }) => [stage, digest]))),
  }),
});

function specOf<D extends TaskSpec["do"]>({ task }: RunContext, wanted: D): Extract<TaskSpec, { do: D }> {
  const spec = JSON.parse(task.spec) as TaskSpec;
  if (spec.do !== wanted) throw new Error(`task ${task.taskId} is no ${wanted}`);
  return spec as Extract<TaskSpec, { do: D }>;
}
