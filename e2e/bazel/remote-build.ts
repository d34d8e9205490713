/** A workspace, a Bazel and a node that executes for it: all created for the test, and removed at the end. */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Program } from "./program.ts";
import { Site } from "./site.ts";
import { addTrials } from "./trials.ts";
import { makeWorkspace } from "./workspace.ts";
import { clearAway } from "#testing/clear-away.ts";

export class RemoteBuild extends Site implements AsyncDisposable {
  readonly program: Program;
  readonly #folder: string;

  private constructor(folder: string, salt: string, program: Program) {
    const workspace = addTrials(makeWorkspace(folder, salt), folder, salt);
    const flags = [`--remote_executor=grpc://${program.address}`, "--spawn_strategy=remote", "--remote_retries=20"];
    super({ folder, salt, workspace, flags: () => flags });
    this.#folder = folder;
    this.program = program;
  }

  static async open(): Promise<RemoteBuild> {
    const folder = await mkdtemp(join(tmpdir(), "millrace-bazel-exec-"));
    chmodSync(folder, 0o711); // actions run as other users, below it
    const actionsIn = join(folder, "actions");
    mkdirSync(actionsIn, { mode: 0o711 });
    return new RemoteBuild(folder, randomUUID(), await Program.open(join(folder, "node"), actionsIn));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bazel.stop();
    await this.program.stop();
    execFileSync("chmod", ["-R", "u+w", this.#folder]); // Bazel makes its outputs read-only
    clearAway(this.#folder);
  }
}
