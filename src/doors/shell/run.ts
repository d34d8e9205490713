/** What a worker does for this door's tasks and plans. */
import { sha256Digest } from "#blobs/sha256.ts";
import type { FailReason } from "#kernel/model/model.ts";
import type { Streams } from "#blobs/streams.ts";
import { isFault } from "#base/fault.ts";
import { withOutput } from "#worker/printed/failure-output.ts";
import { leasesOf } from "#worker/holding.ts";
import { LiveOutput, type StreamKeeper } from "#worker/printed/live-output.ts";
import type { PrintedHead } from "#worker/printed/printed-head.ts";
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
  readonly live?: { readonly streams: Streams; readonly keeper: StreamKeeper } | undefined;
};

/** Both streams of a command go to one file, in the order in which it prints. */
export const outputName = "output";

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
  const { exitCode, killedBy, output } = await ports.processes({
    command: spec.run,
    cwd: scratch.path,
    env: { ...ports.env, ...spec.env, ...aboutTask(context), TMPDIR: scratch.path },
    outputBytesMax,
    signal,
    politeMs: politeMsOf(task.stopMs),
    leases: leasesOf(task, context.leftMs),
    printing: ports.live && ((head, folder) => printing(head, folder, context, ports.live)),
  });
  report({ step: 1, name, status: exitCode === 0 ? "succeeded" : "failed" });
  const tail = output.tail(tailLengthMax);
  const bytes = output.bytes();
  const digest = sha256Digest(bytes);
  if (exitCode !== 0) return await failureOf({ exitCode, killedBy, tail, bytes, digest }, context);
  const result: CommandResult = {
    exitCode,
    tookMs: Math.round(clock.monotonicMs() - startedMonoMs),
    output: digest,
    outputBytes: output.totalBytes,
    tail,
    token: task.token,
  };
  return { kind: "done", payload: JSON.stringify(result), outputs: [{ digest, bytes }] };
}

/**
 * Sends what a command prints to a stream. When the attempt has ended by itself its output is in the store and the
 * stream goes; when it was stopped the stream is all there is, and stays.
 */
function printing(
  head: PrintedHead,
  folder: string | undefined,
  { task, clock, signal, afterwards }: RunContext,
  live: ShellPorts["live"],
): AsyncDisposable {
  if (!live) return { [Symbol.asyncDispose]: async () => {} };
  const { tenant, taskId, token } = task;
  const key = { tenant, task: taskId, token };
  const sent = new LiveOutput(
    { streams: live.streams, clock },
    key,
    { [outputName]: head },
    { markIn: folder, keep: true },
  );
  return {
    async [Symbol.asyncDispose]() {
      if (!signal.aborted) {
        await sent.stop();
        afterwards?.(() => void sent.remove().catch(() => {}));
        return;
      }
      await sent.finish();
      if (sent.hasSent) await live.keeper.keep(key, [outputName]);
    },
  };
}

type Ended = {
  readonly exitCode: number | undefined;
  readonly killedBy: string | undefined;
  readonly tail: string;
  readonly bytes: Uint8Array;
  readonly digest: string;
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
  const isKept = ended.bytes.length > 0 && (await isWritten(ended, blobs));
  const message = isKept ? withOutput(`${how}${said}`, ended.digest) : `${how}${said}`;
  return { kind: "failed", reason: isOutOfMemory ? "out-of-memory" : "user-failure", message };
}

/** A store without space for the output must not hide why the command failed. */
async function isWritten({ digest, bytes }: Ended, blobs: RunContext["blobs"]): Promise<boolean> {
  try {
    await blobs.write(digest, bytes);
    return true;
  } catch (error) {
    if (!isFault(error)) throw error;
    return false;
  }
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
