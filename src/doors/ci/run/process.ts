/** One process of a step, in a group of its own, and how it is stopped (CI-11). */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** SIGINT to the process, then SIGTERM, then SIGKILL to all that it started. */
export type StopGrace = { readonly interruptMs: number; readonly terminateMs: number };

export const standardGrace: StopGrace = { interruptMs: 7500, terminateMs: 2500 };

export type ProcessRequest = {
  readonly program: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly onStdout: (bytes: Uint8Array) => void;
  readonly onStderr: (bytes: Uint8Array) => void;
  readonly signal: AbortSignal;
  readonly grace: StopGrace;
};

export type ProcessEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "killed"; readonly signal: string }
  | { readonly kind: "not-started"; readonly message: string };

/** What a process left running may hold our pipes open with: after its end we read on only for so long. */
const drainMs = 1000;

/** The groups of all processes of one job: what is left in them ends with the job, or with this process. */
export class ProcessGroups {
  readonly #groups = new Set<number>();

  add(pid: number): void {
    if (living.size === 0) process.on("exit", killLiving);
    living.add(this);
    this.#groups.add(pid);
  }

  /** Whether a step has left a process running. */
  get areAlive(): boolean {
    for (const pid of this.#groups) if (isGroupAlive(pid)) return true;
    return false;
  }

  killAll(): void {
    for (const pid of this.#groups) killGroup(pid);
    this.#groups.clear();
    living.delete(this);
    if (living.size === 0) process.removeListener("exit", killLiving);
  }
}

const living = new Set<ProcessGroups>();

function killLiving(): void {
  for (const groups of living) groups.killAll();
}

export async function runProcess(request: ProcessRequest, groups: ProcessGroups): Promise<ProcessEnd> {
  if (request.signal.aborted) return { kind: "killed", signal: "SIGINT" };
  const child = spawn(request.program, [...request.args], {
    cwd: request.folder,
    env: { ...request.env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  child.stdout.on("data", request.onStdout);
  child.stderr.on("data", request.onStderr);
  const closed = once(child, "close").catch(() => undefined);
  const ended = endOf(child);
  if (child.pid !== undefined) groups.add(child.pid);
  using _stopping = stopWhenAborted(child, request);
  const end = await ended;
  await Promise.race([closed, later(drainMs)]);
  child.stdout.destroy();
  child.stderr.destroy();
  return end;
}

function endOf(child: ChildProcess): Promise<ProcessEnd> {
  const { promise, resolve } = Promise.withResolvers<ProcessEnd>();
  child.once("error", (error) => resolve({ kind: "not-started", message: error.message }));
  child.once("exit", (code, signal) =>
    resolve(code === null ? { kind: "killed", signal: signal ?? "SIGKILL" } : { kind: "exited", code }),
  );
  return promise;
}

function stopWhenAborted(child: ChildProcess, { signal, grace }: ProcessRequest): Disposable {
  const timers: NodeJS.Timeout[] = [];
  const stop = (): void => {
    send(child, "SIGINT");
    timers.push(setTimeout(() => send(child, "SIGTERM"), grace.interruptMs));
    timers.push(
      setTimeout(() => child.pid !== undefined && killGroup(child.pid), grace.interruptMs + grace.terminateMs),
    );
  };
  signal.addEventListener("abort", stop, { once: true });
  return {
    [Symbol.dispose]: () => {
      signal.removeEventListener("abort", stop);
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

function send(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
}

function isGroupAlive(pid: number): boolean {
  try {
    process.kill(-pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // nothing of it is left
  }
}

async function later(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms).unref();
  await promise;
}
