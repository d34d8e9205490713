/**
 * Runs a command in a process group of its own and leaves nothing behind: not when it ends, not when it is stopped, and
 * not when this process is killed.
 */
import { spawn, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { Stopped, type StopReason } from "./holding.ts";
import type { CommandSignal } from "./process/protocol.ts";
import { BoundedOutput } from "./printed/output.ts";
import type { PrintedHead } from "./printed/printed-head.ts";

export type ProcessRequest = {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The middle of what is printed beyond this is left out. */
  readonly outputBytesMax: number;
  readonly signal: AbortSignal;
  /** How long after SIGTERM it is killed. */
  readonly politeMs?: number | undefined;
  /** How long it may continue if this process hangs or dies; not every runner lets it continue at all. */
  readonly leases?: {
    readonly leaseMs: number;
    readonly orphanMs: number;
    /** How long its claim is valid, for tasks with outside effects. */
    readonly leftMs?: () => number;
  };
  /** Called when it has been started, with what sends it a signal: to the command alone, not to what that starts. */
  readonly started?: ((tell: (signal: CommandSignal) => void) => void) | undefined;
  /** Called when it runs, with what it prints; disposed of when it has ended, before its output is thrown away. */
  readonly printing?: ((head: PrintedHead, folder: string | undefined) => AsyncDisposable) | undefined;
};

export type ProcessResult = {
  readonly exitCode: number | undefined;
  /** The signal that ended it, if it did not exit by itself. */
  readonly killedBy: string | undefined;
  readonly output: KeptOutput;
  /** Processor time of all its processes, where what started it has measured that. */
  readonly cpuMs?: number;
};

/** Its output, within limits. `whole` is left out where it is too long for memory: then only `printing` has had it. */
export type KeptOutput = {
  readonly totalBytes: number;
  readonly whole: Uint8Array | undefined;
  /** The last characters, for people. */
  tail(lengthMax: number): string;
};

/** The longest output that is kept in memory. */
export const wholeBytesMax = 1024 * 1024;

export type ProcessRunner = (request: ProcessRequest) => Promise<ProcessResult>;

/**
 * A watchdog in the same process group reads a pipe that only this process holds open. The pipe closes when the command
 * has ended or when this process died, even by kill -9; then the watchdog kills the whole group. It is a member of the
 * group itself, so the group id cannot have been reused.
 */
const watchman = '{ read -r _ <&3; kill -9 -$$; } >/dev/null 2>&1 & exec 3<&-; exec "$@"';
const isPosix = process.platform !== "win32";

/** SIGTERM comes first, unless the claim is gone: then another worker may run the task already. */
export const politeMsDefault = 2_000;

/** The time after SIGTERM for an attempt that has so long to stop: a little is left for reporting its end. */
export const politeMsOf = (stopMs: number | undefined): number | undefined =>
  stopMs === undefined ? undefined : Math.max(stopMs * 0.8, stopMs - 5_000);

export const impolite: readonly StopReason[] = ["lost", "lease-ran-out", "crashed"];

export const createProcessRunner =
  (clock: Clock): ProcessRunner =>
  async ({ command, cwd, env, outputBytesMax, signal, leases, printing, politeMs = politeMsDefault, started }) => {
    signal.throwIfAborted();
    // The machine may just have woken from sleep, before the signal's timer fired.
    if (leases?.leftMs && leases.leftMs() <= 0) throw new Stopped("lease-ran-out");
    const [program = "", ...args] = isPosix ? ["/bin/sh", "-c", watchman, "sh", ...command] : command;
    const stdio = isPosix ? (["ignore", "pipe", "pipe", "pipe"] as const) : (["ignore", "pipe", "pipe"] as const);
    const child = spawn(program, args, { cwd, env, stdio: [...stdio], detached: isPosix, windowsHide: true });
    started?.((name) => void child.kill(name)); // the shell before it has become the command, under the same number
    const output = new BoundedOutput(Math.min(outputBytesMax, wholeBytesMax));
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => output.add(chunk));
    const { head } = output;
    await using _printing = printing?.(head, undefined);
    const stop = stopOf(child, clock, signal, politeMs);
    signal.addEventListener("abort", stop.begin, { once: true });
    try {
      const { exitCode, killedBy } = await ended(child);
      head.over();
      return { exitCode, killedBy, output };
    } finally {
      signal.removeEventListener("abort", stop.begin);
      stop.cancel();
      if (signal.aborted) signal.throwIfAborted();
    }
  };

function ended(child: ChildProcess): Promise<{ exitCode: number | undefined; killedBy: string | undefined }> {
  return new Promise((resolve, reject) => {
    child.once("error", (cause: NodeJS.ErrnoException) =>
      reject(new Fault("unavailable", "start process", { errno: cause.code }, cause)),
    );
    // When the group leader has exited, closing the pipe kills its background processes.
    child.once("exit", () => (child.stdio[3] as Readable | undefined)?.destroy());
    child.once("close", (code, killedBy) => resolve({ exitCode: code ?? undefined, killedBy: killedBy ?? undefined }));
  });
}

function stopOf(child: ChildProcess, clock: Clock, signal: AbortSignal, politeMs: number) {
  let cancel = (): void => {};
  const kill = (name: "SIGTERM" | "SIGKILL"): void => {
    try {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      if (isPosix) process.kill(-child.pid, name);
      else child.kill(name);
    } catch {
      // It has just exited.
    }
  };
  const begin = (): void => {
    const why = signal.reason instanceof Stopped ? signal.reason.why : undefined;
    if (why !== undefined && impolite.includes(why)) return kill("SIGKILL");
    kill("SIGTERM");
    cancel = clock.after(politeMs, () => kill("SIGKILL"));
  };
  return { begin, cancel: () => cancel() };
}
