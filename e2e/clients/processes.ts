/** Runs third-party programs to their end. */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, dirname, join } from "node:path";

export type Ran = { readonly code: number; readonly output: string };

export type RunOptions = {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
};

const outputMax = 4 * 1024 * 1024;

/**
 * Both of its outputs together. Programs find our Node first, and inherit nothing else of this process's environment.
 */
export function run(command: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const { HOME = "/tmp", LANG = "C.UTF-8", PATH = "" } = process.env;
  const env = { HOME, LANG, PATH: `${dirname(process.execPath)}${delimiter}${PATH}`, ...options.env };
  return new Promise((resolve, reject) => {
    // Not a pipe for stdin: shells take that as a sign of a remote call.
    const child = spawn(command, args, {
      cwd: options.cwd,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: options.timeoutMs ?? 120_000,
      killSignal: "SIGKILL",
    });
    let output = "";
    const take = (part: Buffer): void => {
      if (output.length < outputMax) output += part.toString();
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", reject);
    child.on("close", (code, signal) =>
      resolve({ code: code ?? -1, output: signal ? `${output}\n(${signal})` : output }),
    );
  });
}

export function onPath(command: string): string | undefined {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(folder, command);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not in this one
    }
  }
  return undefined;
}
