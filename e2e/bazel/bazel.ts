/** A real Bazel, without the network. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import type { Workspace } from "./workspace.ts";

/** The reason to skip if there is none; undefined if there is one. */
export function bazelMissing(): string | undefined {
  const found = spawnSync("bazel", ["--version"], { encoding: "utf8" });
  return found.status === 0 ? undefined : "needs bazel: apt-get install bazel-bootstrap brings one";
}

export type Built = {
  readonly output: string;
  /** How many actions were run in which way, as Bazel counts them. */
  readonly processes: ReadonlyMap<string, number>;
};

const run = promisify(execFile);

export class Bazel {
  readonly #workspace: Workspace;
  readonly #outputs: string;

  constructor(workspace: Workspace, outputs: string) {
    this.#workspace = workspace;
    this.#outputs = outputs;
  }

  build(targets: readonly string[], flags: readonly string[]): Promise<Built> {
    return this.#do("build", targets, flags);
  }

  test(targets: readonly string[], flags: readonly string[]): Promise<Built> {
    return this.#do("test", targets, ["--test_output=errors", ...flags]);
  }

  async #do(command: "build" | "test", targets: readonly string[], flags: readonly string[]): Promise<Built> {
    const repositories = [...this.#workspace.repositories].map(([name, at]) => `--override_repository=${name}=${at}`);
    const quiet = ["--color=no", "--curses=no", "--noshow_loading_progress", "--nosandbox_debug", "--jobs=4"];
    const output = await this.#bazel(command, ...repositories, ...quiet, ...flags, ...targets);
    return { output, processes: processesOf(output) };
  }

  async clean(): Promise<void> {
    await this.#bazel("clean");
  }

  async stop(): Promise<void> {
    await this.#bazel("shutdown");
  }

  async #bazel(command: string, ...rest: readonly string[]): Promise<string> {
    const startup = [`--output_user_root=${this.#outputs}`, "--host_jvm_args=-Xmx512m", "--max_idle_secs=60"];
    const all = ["-n", "10", "bazel", ...startup, command, ...rest];
    try {
      const { stdout, stderr } = await run("nice", all, { cwd: this.#workspace.root, maxBuffer: 64 * 1024 * 1024 });
      return `${stdout}${stderr}`;
    } catch (error) {
      const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
      throw new Error(`bazel ${command} failed:\n${stdout}${stderr}`.slice(-5_000), { cause: error });
    }
  }
}

/** Of `INFO: 12 processes: 7 remote cache hit, 5 internal.` */
function processesOf(output: string): ReadonlyMap<string, number> {
  const [, list = ""] = /^INFO: \d+ process(?:es)?: (.*)\.$/m.exec(output) ?? [];
  return new Map(
    list
      .split(", ")
      .map((part) => /^(\d+) (.*)$/.exec(part))
      .flatMap((match) => (match ? [[match[2] ?? "", Number(match[1])] as const] : [])),
  );
}
