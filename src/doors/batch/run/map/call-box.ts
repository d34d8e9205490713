/**
 * Where a user's function runs: a folder of its own and a process that sees nothing else of the node where there is a
 * sandbox, without a network. Where there is none it is a process of the node's own user.
 */
import { chownSync } from "node:fs";
import { lstat, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { WorkPlace } from "#door/ports.ts";
import { leasesOf } from "#worker/holding.ts";
import { keptOutput } from "#worker/printed/kept-output.ts";
import { cappedFileHead } from "#worker/printed/printed-head.ts";
import type { KeptOutput, ProcessRequest } from "#worker/process.ts";
import type { RunContext } from "#worker/runner.ts";

export type CallLimits = { readonly memoryBytes: number; readonly fileBytes: number };

export type CallEnd = {
  readonly isOutOfMemory: boolean;
  /** What it printed last, or how it was ended. */
  readonly said: string;
  /** All that it printed. */
  readonly output: KeptOutput;
};

type Printing = ProcessRequest["printing"];

export type CallBox = AsyncDisposable & {
  /** Moves a file of the node into the folder. */
  take(from: string, name: string): Promise<void>;
  give(name: string, bytes: Uint8Array | string): Promise<void>;
  run(argv: readonly string[], limits: CallLimits, signal: AbortSignal, printing?: Printing): Promise<CallEnd>;
  /** Moves a file out of the folder; false where there is none. Once nothing runs in it any more. */
  fetch(name: string, to: string): Promise<boolean>;
};

export type OpenCallBox = (context: Pick<RunContext, "task" | "signal">) => Promise<CallBox>;

const saidLengthMax = 8 * 1024;

export const callBoxes =
  (place: WorkPlace): OpenCallBox =>
  (context) =>
    place.boxed ? sandboxed(place.boxed, place, context) : plain(place, context);

/** The program in there prints everything to standard error. */
async function sandboxed(
  { sandbox, pidsMax }: NonNullable<WorkPlace["boxed"]>,
  { env, printedBytesMax }: WorkPlace,
  { task, signal }: Pick<RunContext, "task" | "signal">,
): Promise<CallBox> {
  const attempt = await sandbox.attempt(signal);
  const { path, root, stderr } = attempt.folder;
  return {
    ...folderOf(root, attempt.lane.uid),
    async run(argv, { memoryBytes, fileBytes }, until, printing) {
      const head = cappedFileHead(stderr, printedBytesMax);
      await using _printing = printing?.(head, path);
      const ran = await attempt.run(
        {
          tag: task.taskId,
          argv,
          env,
          workingDirectory: "",
          network: false,
          limits: { pids: Math.min(pidsMax, 64), memoryBytes, fileBytes },
          timeoutMs: 0,
          ...leasesOf(task),
          outputBytesMax: printedBytesMax,
        },
        until,
      );
      until.throwIfAborted();
      head.over();
      const output = await keptOutput(stderr, ran.stderr.leftOutBytes);
      const said = [ran.message, output.tail(saidLengthMax).trim()].filter(Boolean).join(": ");
      return { isOutOfMemory: ran.outOfMemory, said, output };
    },
    [Symbol.asyncDispose]: () => attempt[Symbol.asyncDispose](),
  };
}

async function plain(
  { scratch, processes, env, printedBytesMax }: WorkPlace,
  { task }: Pick<RunContext, "task" | "signal">,
): Promise<CallBox> {
  const folder = await scratch(task.taskId);
  return {
    ...folderOf(folder.path, undefined),
    async run(command, _limits, signal, printing) {
      const { output } = await processes({
        command,
        cwd: folder.path,
        env: { ...env, TMPDIR: folder.path },
        outputBytesMax: printedBytesMax,
        signal,
        leases: leasesOf(task),
        printing,
      });
      return { isOutOfMemory: false, said: output.tail(saidLengthMax).trim(), output };
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

export function folderOf(root: string, uid: number | undefined): Pick<CallBox, "take" | "give" | "fetch"> {
  const own = (path: string): void => void (uid !== undefined && chownSync(path, uid, uid));
  return {
    async take(from, name) {
      const path = join(root, name);
      await rename(from, path);
      own(path);
    },
    async give(name, bytes) {
      const path = join(root, name);
      await writeFile(path, bytes, { mode: 0o600, flag: "wx" });
      own(path);
    },
    async fetch(name, to) {
      const path = join(root, name);
      const about = await lstat(path).catch(() => undefined);
      if (!about) return false;
      // The folder was the function's: a link there could lead anywhere.
      if (!about.isFile() || about.nlink !== 1)
        throw new Fault("invalid", "run function", { why: `it left something at ${name} that is no plain file` });
      await rm(to, { force: true });
      await rename(path, to);
      return true;
    },
  };
}
