/**
 * Runs git for the node: without questions, without settings of users or machines, with few protocols, limited in time,
 * output and number.
 *
 * GT1 Nothing that was pushed or fetched is executed: no hooks, no filters, no helpers that a repository names.
 * GT2 A git process ends with its whole process group: when it is done, when its time is over, when its caller leaves.
 */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { pipeline, Readable, type Writable } from "node:stream";
import { Fault } from "#base/fault.ts";

export type GitOptions = {
  readonly input?: string | AsyncIterable<Uint8Array>;
  readonly bytesMax?: number;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly env?: Readonly<Record<string, string>>;
  readonly config?: Readonly<Record<string, string>>;
};

const bytesMaxDefault = 64 * 1024 * 1024;
const timeoutMsDefault = 60_000;
const saidMax = 4_000;

/** GT1. These count for all processes that git starts, too. */
const settings: Readonly<Record<string, string>> = {
  "safe.directory": "*", // the node decides which repositories are read, not their owner
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.askPass": "/bin/false",
  "credential.helper": "",
  "protocol.ext.allow": "never",
  "protocol.allow": "user", // GIT_ALLOW_PROTOCOL has the last word
  "http.followRedirects": "false", // a redirect could lead to an address that was not checked
  "gc.auto": "0",
  "maintenance.auto": "false",
  "receive.autogc": "false",
  "submodule.recurse": "false",
  "advice.detachedHead": "false",
};

function environment({ env = {}, config = {} }: GitOptions): Record<string, string> {
  const all = Object.entries({ ...settings, ...config });
  return {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    HOME: "/nonexistent",
    LC_ALL: "C.UTF-8",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "/bin/false",
    GIT_ALLOW_PROTOCOL: "file",
    GIT_SSH_COMMAND: "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes",
    ...env,
    GIT_CONFIG_COUNT: String(all.length),
    ...Object.fromEntries(
      all.flatMap(([key, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  };
}

/** A git process whose output is read as it comes. */
export type RunningGit = {
  readonly output: AsyncGenerator<Uint8Array>;
  /** Resolves when it has exited; rejects with a Fault unless it succeeded. */
  readonly ended: Promise<void>;
  stop(why: string): void;
};

export function startGit(folder: string, args: readonly string[], options: GitOptions = {}): RunningGit {
  const { input, timeoutMs = timeoutMsDefault, signal } = options;
  signal?.throwIfAborted();
  const child = spawn("git", args, {
    cwd: folder,
    env: environment(options),
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  let said = "";
  let why: string | undefined;
  const stop = (because: string): void => {
    why ??= because;
    killGroup(child.pid);
  };
  const left = (): void => stop("the caller left");
  const timer = setTimeout(() => stop(`it took longer than ${timeoutMs} ms`), timeoutMs);
  signal?.addEventListener("abort", left, { once: true });
  child.stderr.on("data", (part: Buffer) => (said = `${said}${part.toString("utf8")}`.slice(-saidMax)));
  const ended = exitOf(child, args).then((code) => {
    if (why !== undefined) throw new Fault("unavailable", `git ${nameOf(args)}`, { why });
    if (code !== 0) throw new Fault("invalid", `git ${nameOf(args)}`, { why: reasonIn(said) });
  });
  const over = ended.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", left);
    killGroup(child.pid); // what it may have left behind
  });
  over.catch(() => {}); // those who do not wait for the end have read the output's
  feed(child.stdin, input, stop);
  return { output: outputOf(child, stop), ended: over, stop };
}

/** The whole output of a git process. */
export async function git(folder: string, args: readonly string[], options: GitOptions = {}): Promise<Buffer> {
  const { bytesMax = bytesMaxDefault } = options;
  const running = startGit(folder, args, options);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of running.output) {
    bytes += part.length;
    if (bytes > bytesMax) {
      running.stop(`it printed more than ${bytesMax} bytes`);
      break;
    }
    parts.push(part);
  }
  await running.ended;
  return Buffer.concat(parts);
}

export const gitText = async (folder: string, args: readonly string[], options?: GitOptions): Promise<string> =>
  (await git(folder, args, options)).toString("utf8");

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

function exitOf(child: Child, args: readonly string[]): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "ENOENT" ? "git is not installed, or the folder is gone" : cause.code;
      reject(new Fault("unavailable", `git ${nameOf(args)}`, { why }, cause));
    });
    child.once("close", (code) => resolve(code));
  });
}

/** Parts are copies of what the pipe held, so that they may be kept. */
async function* outputOf(child: Child, stop: (why: string) => void): AsyncGenerator<Uint8Array> {
  let isAll = false;
  try {
    for await (const part of child.stdout) yield part as Buffer;
    isAll = true;
  } finally {
    if (!isAll) stop("its output was not read to the end");
  }
}

function feed(stdin: Writable, input: GitOptions["input"], stop: (why: string) => void): void {
  stdin.on("error", () => {}); // git says why it does not read
  if (input === undefined || typeof input === "string") return void stdin.end(input ?? "");
  // What fails is the input, or git, which then says so itself.
  pipeline(Readable.from(input, { objectMode: false }), stdin, (error) => {
    if (error && error.code !== "EPIPE") stop(error.message);
  });
}

/** A group that is gone already, or was never there, is no failure. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // it has ended
  }
}

const nameOf = (args: readonly string[]): string => args.find((word) => !word.startsWith("-")) ?? "";

const reasonIn = (said: string): string =>
  said
    .trim()
    .split("\n")
    .findLast((line) => /^(fatal|error): /.test(line)) ?? said.trim().slice(-300);
