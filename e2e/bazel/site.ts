/** A workspace and a Bazel with a remote executor: one node, or any of several. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Bazel, type Built } from "./bazel.ts";
import type { Workspace } from "./workspace.ts";

export type SiteOptions = {
  /** Holds Bazel's own files, too. */
  readonly folder: string;
  /** Part of everything that is built, so that no cache has it. */
  readonly salt: string;
  readonly workspace: Workspace;
  /** Evaluated each time: the flags with the executor's address. */
  readonly flags: () => readonly string[];
};

export class Site {
  readonly salt: string;
  readonly bazel: Bazel;
  readonly #options: SiteOptions;

  constructor(options: SiteOptions) {
    this.salt = options.salt;
    this.bazel = new Bazel(options.workspace, join(options.folder, "bazel"));
    this.#options = options;
  }

  build(...targets: readonly string[]): Promise<Built> {
    return this.bazel.build(targets, this.#options.flags());
  }

  /** Targets that are not tests are built. */
  test(targets: readonly string[], ...more: readonly string[]): Promise<Built> {
    return this.bazel.test(targets, [...this.#options.flags(), ...more]);
  }

  /** Where an output is. */
  at(path: string): string {
    return join(this.#options.workspace.root, "bazel-bin", path);
  }

  made(path: string): string {
    return readFileSync(this.at(path), "utf8");
  }

  /** The server logs of failed actions, as Bazel stored them. */
  serverLogs(): readonly string[] {
    const { folder } = this.#options;
    const files = globSync("bazel/*/bazel-remote-logs/*/*", { cwd: folder });
    return files.map((file) => readFileSync(join(folder, file), "utf8"));
  }
}
