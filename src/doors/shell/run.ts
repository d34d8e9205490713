/** What a worker does for this door's tasks and plans. */
import type { FailReason } from "#kernel/model/model.ts";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { withOutput } from "#worker/printed/failure-output.ts";
import { leasesOf } from "#worker/holding.ts";
import { giveAccess } from "#worker/task-access-file.ts";
import { TaskOutput, type KeptAs, type OutputPorts } from "#worker/printed/task-output.ts";
import type { ProcessRunner } from "#worker/process.ts";
import { politeMsOf } from "#worker/process.ts";
import type { Planners, RunContext, RunOutcome, Runners } from "#worker/runner.ts";
import { kinds, planGate, type TaskSpec } from "./plan.ts";

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

const tailLengthMax = 2_000;

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
  const access = await giveAccess(context, scratch.path);
  const { exitCode, killedBy, output } = await ports.processes({
    command: spec.run,
    cwd: scratch.path,
    env: { ...ports.env, ...spec.env, ...aboutTask(context), ...access, TMPDIR: scratch.path },
    outputBytesMax: ports.printedBytesMax,
    signal,
    politeMs: politeMsOf(task.stopMs),
    leases: leasesOf(task, context.leftMs),
    printing: printed.printing,
  });
  report({ step: 1, name, status: exitCode === 0 ? "succeeded" : "failed" });
  const tail = output.tail(tailLengthMax);
  const keeping = printed.kept(output);
  if (exitCode !== 0) return await failureOf({ exitCode, killedBy, tail, keeping }, context);
  const { digest, outputs } = await keeping;
  const result: CommandResult = {
    exitCode,
    tookMs: Math.round(clock.monotonicMs() - startedMonoMs),
    output: digest,
    outputBytes: output.totalBytes,
    tail,
    token: task.token,
  };
  return { kind: "done", payload: JSON.stringify(result), outputs, digests: [digest] };
}

type Ended = {
  readonly exitCode: number | undefined;
  readonly killedBy: string | undefined;
  readonly tail: string;
  readonly keeping: Promise<KeptAs>;
};

async function failureOf(ended: Ended, { blobs }: RunContext): Promise<RunOutcome> {
  const said = ended.tail.trim() === "" ? "" : `: ${ended.tail.trim().slice(-1_500)}`;
  // We did not stop it, or the attempt would have ended as stopped: most likely the kernel did, for lack of memory.
  const isOutOfMemory = ended.killedBy === "SIGKILL";
  const how = isOutOfMemory
    ? "killed from outside, most likely for want of memory"
    : ended.exitCode === undefined
      ? `killed by ${ended.killedBy}`
      : `exit code ${ended.exitCode}`;
  const digest = await digestOf(ended, blobs);
  const message = digest === undefined ? `${how}${said}` : withOutput(`${how}${said}`, digest);
  const failed = { kind: "failed", reason: isOutOfMemory ? "out-of-memory" : "user-failure", message } as const;
  if (digest === undefined) return failed;
  const { exitCode, tail } = ended;
  return { ...failed, left: { payload: JSON.stringify({ exitCode, output: digest, tail }), digests: [digest] } };
}

/** A store without space for the output must not hide why the command failed. */
async function digestOf({ keeping, tail }: Ended, blobs: RunContext["blobs"]): Promise<Digest | undefined> {
  try {
    const { digest, outputs } = await keeping;
    for (const { bytes } of outputs) await blobs.write(digest, bytes);
    return tail === "" ? undefined : digest;
  } catch (error) {
    if (!isFault(error)) throw error;
    return undefined;
  }
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
