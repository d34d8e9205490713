/** Runs git for the node: without questions, without anybody's settings, bounded in time and size. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";

export type GitOptions = {
  readonly input?: string;
  readonly bytesMax?: number;
  readonly timeoutMs?: number;
};

const bytesMaxDefault = 64 * 1024 * 1024;
const timeoutMsDefault = 60_000;
const saidMax = 2_000;

/** Repositories of any owner are read: the node decides which. */
export const gitConfig = join(import.meta.dirname, "gitconfig");

const env = (): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "/usr/bin:/bin",
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: gitConfig,
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "/bin/false",
  GIT_ALLOW_PROTOCOL: "file:http:https:ssh:git",
  GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
});

export async function git(folder: string, args: readonly string[], options: GitOptions = {}): Promise<Buffer> {
  const { input, bytesMax = bytesMaxDefault, timeoutMs = timeoutMsDefault } = options;
  const child = spawn("git", ["-C", folder, ...args], { env: env(), stdio: ["pipe", "pipe", "pipe"] });
  const ended = Promise.withResolvers<number | null>();
  child.once("error", (cause) => ended.reject(new Fault("unavailable", "run git", { what: args[0] ?? "" }, cause)));
  child.once("close", (code) => ended.resolve(code));
  const parts: Buffer[] = [];
  let bytes = 0;
  let said = "";
  let why = "";
  const stop = (because: string): void => {
    why = because;
    child.kill("SIGKILL");
  };
  child.stdout.on("data", (part: Buffer) => {
    bytes += part.length;
    if (bytes > bytesMax) stop(`more than ${bytesMax} bytes`);
    else parts.push(part);
  });
  child.stderr.on("data", (part: Buffer) => (said = `${said}${part.toString("utf8")}`.slice(-saidMax)));
  child.stdin.on("error", () => {}); // git says why it does not read
  child.stdin.end(input ?? "");
  const timer = setTimeout(() => stop(`it took longer than ${timeoutMs} ms`), timeoutMs);
  const code = await ended.promise.finally(() => clearTimeout(timer));
  if (code === 0 && why === "") return Buffer.concat(parts);
  throw new Fault("invalid", `git ${args[0] ?? ""}`, { why: why === "" ? lastLine(said) : why });
}

const lastLine = (text: string): string =>
  text
    .trim()
    .split("\n")
    .filter((line) => line.startsWith("fatal:") || line.startsWith("error:"))
    .at(-1) ?? text.trim().slice(-200);

export const gitText = async (folder: string, args: readonly string[], options: GitOptions = {}): Promise<string> =>
  (await git(folder, args, options)).toString("utf8");
