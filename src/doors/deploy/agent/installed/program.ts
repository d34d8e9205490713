/**
 * The agent's own versions. A release of the service `millrace-agent` is staged like any other; switching to it means
 * ending, and leaving the rest to the supervisor (supervisor.ts).
 *
 * SU3 The trial is on disk before the link is switched: killed in between, the old version finds that it is not the one
 *     on trial and takes it back.
 */
import { chmod, readlink, rm, symlink, unlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { ignoreMissing } from "#base/ignore-missing.ts";
import type { RunSpec } from "#doors/deploy/manifest/run-spec.ts";
import { readIfThere, switchLink, writeDurably } from "#doors/deploy/agent/durable-files.ts";
import { startScript } from "./supervisor.ts";

/** The service whose releases are versions of the agent. */
export const selfService = "millrace-agent";

export type Outcome = {
  /** The manifest that this process was started from; undefined for what was installed. */
  readonly runs: string | undefined;
  /** Whether it has yet to show that it may stay. */
  readonly isOnTrial: boolean;
  /** The manifest that did not stay. */
  readonly failed: string | undefined;
};

/** How another program takes over from this one. */
export type HandOver = {
  outcome(): Promise<Outcome>;
  /** What did not stay is remembered. */
  settled(): Promise<void>;
  /** Does not come back. */
  begin(manifest: string, folder: string, run: RunSpec): Promise<void>;
};

export class Program implements HandOver {
  readonly #folder: string;
  readonly #root: string;
  readonly #runs: string | undefined;
  readonly #end: () => void;

  /** `runs`: the manifest that this process was started from; undefined for what was installed. */
  constructor(root: string, runs: string | undefined, end: () => void) {
    this.#root = root;
    this.#folder = programFolder(root);
    this.#runs = runs;
    this.#end = end;
  }

  async outcome(): Promise<Outcome> {
    const trial = await readIfThere(this.#at("trial"));
    const isOnTrial = trial !== undefined && trial.split(" ")[0] === this.#runs;
    if (trial !== undefined && !isOnTrial) await unlink(this.#at("trial")).catch(ignoreMissing); // SU3
    const failed = await readIfThere(this.#at("failed"));
    return { runs: this.#runs, failed: failed?.trim(), isOnTrial };
  }

  async settled(): Promise<void> {
    await rm(this.#at("failed"), { force: true });
  }

  /** This version answers to a node: it stays (SU1). */
  async confirm(): Promise<void> {
    await unlink(this.#at("trial")).catch(ignoreMissing);
  }

  async begin(manifest: string, folder: string, run: RunSpec): Promise<void> {
    const name = `start-${basename(folder)}.sh`;
    const { command, withinMs } = run;
    await this.#writeScript(name, startScript({ folder, command, root: this.#root, manifest }));
    await writeDurably(this.#at("previous"), await readlink(this.#at("current")));
    await writeDurably(this.#at("trial"), `${manifest} ${Math.ceil(withinMs / 1_000)}`);
    await switchLink(this.#at("current"), name);
    this.#end();
  }

  /** The version that comes with the installation. */
  static async install(root: string, command: readonly string[]): Promise<void> {
    const folder = programFolder(root);
    const program = new Program(root, undefined, () => undefined);
    await program.#writeScript("start-installed.sh", startScript({ folder, command, root, manifest: undefined }));
    for (const name of ["trial", "previous", "failed"]) await rm(join(folder, name), { force: true });
    await unlink(join(folder, "current")).catch(ignoreMissing);
    await symlink("start-installed.sh", join(folder, "current"));
  }

  async #writeScript(name: string, text: string): Promise<void> {
    await writeDurably(this.#at(name), text);
    await chmod(this.#at(name), 0o700);
  }

  #at(name: string): string {
    return join(this.#folder, name);
  }
}

export const programFolder = (root: string): string => join(root, "program");
