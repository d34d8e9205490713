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
import { fileHead } from "#worker/printed/file-head.ts";
import type { RunContext } from "#worker/runner.ts";

export type CallLimits = { readonly memoryBytes: number; readonly fileBytes: number };

export type CallEnd = {
  readonly isOutOfMemory: boolean;
  /** What it printed to standard error, or how it was ended. */
  readonly said: string;
};

export type CallBox = AsyncDisposable & {
  /** Moves a file of the node into the folder. */
  take(from: string, name: string): Promise<void>;
  give(name: string, bytes: Uint8Array | string): Promise<void>;
  run(argv: readonly string[], limits: CallLimits, signal: AbortSignal): Promise<CallEnd>;
  /** Moves a file out of the folder; false where there is none. Once nothing runs in it any more. */
  fetch(name: string, to: string): Promise<boolean>;
};

export type OpenCallBox = (context: Pick<RunContext, "task" | "signal">) => Promise<CallBox>;

const saidBytesMax = 8 * 1024;

export const callBoxes =
  (place: WorkPlace): OpenCallBox =>
  (context) =>
    place.boxed ? sandboxed(place.boxed, place.env, context) : plain(place, context);

async function sandboxed(
  { sandbox, pidsMax }: NonNullable<WorkPlace["boxed"]>,
  env: WorkPlace["env"],
  { task, signal }: Pick<RunContext, "task" | "signal">,
): Promise<CallBox> {
  const attempt = await sandbox.attempt(signal);
  const { root, stderr } = attempt.folder;
  return {
    ...folderOf(root, attempt.lane.uid),
    async run(argv, { memoryBytes, fileBytes }, until) {
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
          outputBytesMax: saidBytesMax,
        },
        until,
      );
      until.throwIfAborted();
      const said = (await fileHead(stderr, saidBytesMax)).toString("utf8").trim();
      return { isOutOfMemory: ran.outOfMemory, said: [ran.message, said].filter(Boolean).join(": ") };
    },
    [Symbol.asyncDispose]: () => attempt[Symbol.asyncDispose](),
  };
}

async function plain(
  { scratch, processes, env }: WorkPlace,
  { task }: Pick<RunContext, "task" | "signal">,
): Promise<CallBox> {
  const folder = await scratch(task.taskId);
  return {
    ...folderOf(folder.path, undefined),
    async run(command, _limits, signal) {
      const { output } = await processes({
        command,
        cwd: folder.path,
        env: { ...env, TMPDIR: folder.path },
        outputBytesMax: saidBytesMax,
        signal,
        leases: leasesOf(task),
      });
      return { isOutOfMemory: false, said: output.tail(saidBytesMax).trim() };
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
