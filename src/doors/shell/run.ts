/** What a worker does for this door's tasks and plans. */
import { sha256Digest } from "#blobs/sha256.ts";
import type { FailReason } from "#kernel/model/model.ts";
import { leasesOf } from "#worker/holding.ts";
import type { ProcessRunner } from "#worker/process.ts";
import type { Planners, RunContext, RunOutcome, Runners } from "#worker/runner.ts";
import { kinds, planGate, type TaskSpec } from "./plan.ts";

export type ShellPorts = {
  /** A fresh folder for one attempt, gone with it. */
  readonly scratch: (name: string) => Promise<AsyncDisposable & { readonly path: string }>;
  readonly processes: ProcessRunner;
  /** What every command sees besides its own variables. */
  readonly env: Readonly<Record<string, string>>;
};

const outputBytesMax = 1024 * 1024;
const tailLengthMax = 2_000;

export function shellRunners(ports: ShellPorts): Runners {
  return {
    [kinds.command]: (context) => runCommand(specOf(context, "command"), context, ports),
    [kinds.sleep]: async (context) => {
      const { ms } = specOf(context, "sleep");
      await context.clock.sleep(ms, context.signal);
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
};

type CommandSpec = Extract<TaskSpec, { do: "command" }>;

async function runCommand(spec: CommandSpec, context: RunContext, ports: ShellPorts): Promise<RunOutcome> {
  const { task, clock, signal, report } = context;
  await using scratch = await ports.scratch(task.taskId);
  const startedMonoMs = clock.monotonicMs();
  const name = spec.run.join(" ").slice(0, 200);
  report({ step: 1, name, status: "started" });
  const { exitCode, killedBy, output } = await ports.processes({
    command: spec.run,
    cwd: scratch.path,
    env: { ...ports.env, ...spec.env, ...aboutTask(context), TMPDIR: scratch.path },
    outputBytesMax,
    signal,
    leases: leasesOf(task, context.leftMs),
  });
  report({ step: 1, name, status: exitCode === 0 ? "succeeded" : "failed" });
  const tail = output.tail(tailLengthMax);
  if (exitCode !== 0) return failureOf({ exitCode, killedBy, tail });
  const bytes = output.bytes();
  const digest = sha256Digest(bytes);
  const result: CommandResult = {
    exitCode,
    tookMs: Math.round(clock.monotonicMs() - startedMonoMs),
    output: digest,
    outputBytes: output.totalBytes,
    tail,
  };
  return { kind: "done", payload: JSON.stringify(result), outputs: [{ digest, bytes }] };
}

function failureOf(ended: { exitCode: number | undefined; killedBy: string | undefined; tail: string }): RunOutcome {
  const said = ended.tail.trim() === "" ? "" : `: ${ended.tail.trim().slice(-1_500)}`;
  // We did not stop it, or the attempt would have ended as stopped: somebody else did, mostly for want of memory.
  if (ended.killedBy === "SIGKILL")
    return {
      kind: "failed",
      reason: "out-of-memory",
      message: `killed from outside, most likely for want of memory${said}`,
    };
  const how = ended.exitCode === undefined ? `killed by ${ended.killedBy}` : `exit code ${ended.exitCode}`;
  return { kind: "failed", reason: "user-failure", message: `${how}${said}` };
}

const aboutTask = ({ task }: RunContext): Record<string, string> => ({
  MILLRACE_JOB: task.jobId,
  MILLRACE_TASK: task.taskId,
  MILLRACE_STAGE: task.stageName,
  MILLRACE_INDEX: task.key,
  MILLRACE_ATTEMPT: String(task.attempt),
});

function specOf<D extends TaskSpec["do"]>({ task }: RunContext, wanted: D): Extract<TaskSpec, { do: D }> {
  const spec = JSON.parse(task.spec) as TaskSpec;
  if (spec.do !== wanted) throw new Error(`task ${task.taskId} is no ${wanted}`);
  return spec as Extract<TaskSpec, { do: D }>;
}
