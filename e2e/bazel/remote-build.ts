/** A workspace, a Bazel and a node that executes for it: each made anew, and all of it gone in the end. */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, globSync, mkdirSync, readFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bazel, type Built } from "./bazel.ts";
import { Program } from "./program.ts";
import { addTrials } from "./trials.ts";
import { makeWorkspace, type Workspace } from "./workspace.ts";
import { clearAway } from "#test/clear-away.ts";

export class RemoteBuild implements AsyncDisposable {
  /** In everything that is built, so that no cache has it. */
  readonly salt: string;
  readonly bazel: Bazel;
  readonly program: Program;
  readonly #folder: string;
  readonly #workspace: Workspace;

  private constructor(folder: string, salt: string, workspace: Workspace, program: Program) {
    this.salt = salt;
    this.#folder = folder;
    this.#workspace = workspace;
    this.bazel = new Bazel(workspace, join(folder, "bazel"));
    this.program = program;
  }

  static async open(): Promise<RemoteBuild> {
    const folder = await mkdtemp(join(tmpdir(), "millrace-bazel-exec-"));
    chmodSync(folder, 0o711); // actions run as other users, below it
    const actionsIn = join(folder, "actions");
    mkdirSync(actionsIn, { mode: 0o711 });
    const salt = randomUUID();
    const workspace = addTrials(makeWorkspace(folder, salt), folder, salt);
    return new RemoteBuild(folder, salt, workspace, await Program.open(join(folder, "node"), actionsIn));
  }

  get flags(): readonly string[] {
    return [`--remote_executor=grpc://${this.program.address}`, "--spawn_strategy=remote", "--remote_retries=20"];
  }

  build(...targets: readonly string[]): Promise<Built> {
    return this.bazel.build(targets, this.flags);
  }

  test(target: string, ...more: readonly string[]): Promise<Built> {
    return this.bazel.test([target], [...this.flags, ...more]);
  }

  /** Where an output is. */
  at(path: string): string {
    return join(this.#workspace.root, "bazel-bin", path);
  }

  made(path: string): string {
    return readFileSync(this.at(path), "utf8");
  }

  /** What the node noted of actions that failed, as Bazel has filed it. */
  serverLogs(): readonly string[] {
    const files = globSync("bazel/*/bazel-remote-logs/*/*", { cwd: this.#folder });
    return files.map((file) => readFileSync(join(this.#folder, file), "utf8"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bazel.stop();
    await this.program.stop();
    execFileSync("chmod", ["-R", "u+w", this.#folder]); // Bazel makes its outputs read-only
    clearAway(this.#folder);
  }
}
