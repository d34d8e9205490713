/**
 * Where a job runs: a folder of its own, and a way to start its program there. In a sandbox the job sees its folder
 * under another name and nothing of the node's; without one it is a process of the node's own user.
 */
import { createHash } from "node:crypto";
import { chownSync, existsSync, lchownSync, readdirSync, writeFileSync } from "node:fs";
import { lstat, mkdir, rename, rm, symlink } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { Boxed, WorkPlace } from "#door/ports.ts";
import type { Granted } from "#shard/client/executor.ts";
import { leasesOf } from "#worker/holding.ts";
import type { RunContext } from "#worker/runner.ts";
import { boxRoot } from "#worker/sandbox/box.ts";
import { fileHead } from "#worker/printed/file-head.ts";

export type JobBox = AsyncDisposable & {
  /** As the node sees it. */
  readonly folder: string;
  /** As the job sees it. */
  readonly seenAs: string;
  /** Gives it the name that paths in files of an earlier attempt lead to; false where it cannot have that. */
  seeAs(name: string): Promise<boolean>;
  readonly isSandbox: boolean;
  /** Puts a file into the folder, for the job alone. Before it starts. */
  give(name: string, text: string): void;
  /** Makes a folder in it the job's own. Before it starts. */
  own(path: string): void;
  run(start: JobStart, signal: AbortSignal): Promise<JobEnd>;
};

export type JobStart = {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

/** How the program ended, and the end of what it said itself: an ordinary job says nothing there. */
export type JobEnd = {
  readonly exitCode: number | undefined;
  readonly said: string;
  /** Processor time of all that ran in the box, where that was measured from outside. */
  readonly cpuMs?: number | undefined;
};

const saidBytesMax = 64 * 1024;
const saidLength = 1_500;

export async function plainBox({ scratch, processes }: WorkPlace, context: RunContext): Promise<JobBox> {
  const { task, leftMs } = context;
  const folder = await scratch(task.taskId);
  return {
    folder: folder.path,
    seenAs: folder.path,
    seeAs: async (name) => name === folder.path,
    isSandbox: false,
    give: (name, text) => writeFileSync(join(folder.path, name), text, { mode: 0o600, flag: "wx" }),
    own: () => {},
    async run({ argv, env }, signal) {
      const { exitCode, output, cpuMs } = await processes({
        command: argv,
        cwd: folder.path,
        env: { ...env, TMPDIR: folder.path },
        outputBytesMax: saidBytesMax,
        signal,
        leases: leasesOf(task, leftMs),
      });
      return { exitCode, said: output.tail(saidLength), cpuMs };
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

/** The same on every machine where the runner has the same user and the same folder for temporary files. */
const linksFolder = (): string => join(tmpdir(), `millrace-jobs-${userInfo().uid}`);
/** Two clusters call their tasks alike, and may have runners on one machine: what the task is to do is part of it. */
export const linkOf = ({ tenant, taskId, spec }: Pick<Granted, "tenant" | "taskId" | "spec">): string => {
  const hash = createHash("sha256").update(JSON.stringify([tenant, taskId, spec]));
  return join(linksFolder(), hash.digest("hex").slice(0, 16));
};

/** Paths in a job's files and variables lead to its folder: they stay right when it goes on elsewhere. */
export async function linkedBox(place: WorkPlace, context: RunContext): Promise<JobBox> {
  const box = await plainBox(place, context);
  await mkdir(linksFolder(), { recursive: true, mode: 0o700 });
  const { uid } = await lstat(linksFolder());
  if (uid !== userInfo().uid)
    throw new Fault("invalid", "make a job's folder", { folder: linksFolder(), why: "it belongs to another user" });
  let seenAs = linkOf(context.task);
  const link = async (name: string): Promise<void> => {
    const fresh = `${name}.${context.task.token}`;
    await rm(fresh, { force: true });
    await symlink(box.folder, fresh);
    await rename(fresh, name);
    seenAs = name;
  };
  await link(seenAs);
  return {
    ...box,
    get seenAs() {
      return seenAs;
    },
    async seeAs(name) {
      if (name === seenAs) return true;
      if (dirname(name) !== linksFolder() || !/^[\da-f]{16}$/.test(basename(name))) return false;
      if (existsSync(name)) return false; // another job is there under that name
      await link(name);
      return true;
    },
  };
}

export async function sandboxBox({ sandbox, pidsMax }: Boxed, context: RunContext): Promise<JobBox> {
  const { task } = context;
  const attempt = await sandbox.attempt(context.signal);
  const { root, stderr } = attempt.folder;
  const seenAs = sandbox.about.kind === "bubblewrap" ? boxRoot : root;
  return {
    folder: root,
    seenAs,
    seeAs: async (name) => name === seenAs,
    isSandbox: true,
    give(name, text) {
      const path = join(root, name);
      writeFileSync(path, text, { mode: 0o600, flag: "wx" });
      if (attempt.lane.uid !== undefined) chownSync(path, attempt.lane.uid, attempt.lane.uid);
    },
    own: (path) => attempt.lane.uid !== undefined && chownAll(path, attempt.lane.uid),
    async run({ argv, env }, signal) {
      const ran = await attempt.run(
        {
          tag: task.taskId,
          argv,
          env,
          workingDirectory: "",
          network: true,
          limits: { pids: pidsMax },
          timeoutMs: 0,
          ...leasesOf(task),
          outputBytesMax: saidBytesMax,
        },
        signal,
      );
      signal.throwIfAborted();
      if (ran.why !== "exited") throw new Fault("unavailable", "run the job", { why: ran.message ?? ran.why });
      const said = (await fileHead(stderr, saidBytesMax)).toString("utf8").slice(-saidLength);
      return { exitCode: ran.exitCode, said: ran.message ?? said, cpuMs: ran.usage.cpuMs };
    },
    [Symbol.asyncDispose]: () => attempt[Symbol.asyncDispose](),
  };
}

function chownAll(path: string, uid: number): void {
  for (const name of readdirSync(path, { recursive: true, encoding: "utf8" })) lchownSync(join(path, name), uid, uid);
  lchownSync(path, uid, uid);
}
