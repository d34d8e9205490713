/**
 * How the program that runs a job is started. It starts with a third of the CPU where it is one file (`dist/jobs`, made
 * with the package) and V8 has compiled it before. The file counts only if it was made of the modules that are here.
 * Compiled code is kept beside the package; the node fills that folder itself, before jobs use it. In a sandbox jobs
 * can only read it: who could write to it could run code in the jobs of others.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { folderVariable, noRequestCode } from "./request.ts";
import { preloadFlags } from "#worker/process/preload-flags.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const folder = join(root, "node_modules", ".cache", "millrace", "jobs");
const modules = fileURLToPath(new URL("./host.ts", import.meta.url));
const bundle = join(root, "dist", "jobs");
const fillMsMax = 60_000;

export type JobProgram = {
  readonly argv: readonly string[];
  /** Variables for the job's program, not for its steps. */
  readonly env: Readonly<Record<string, string>>;
};

const asModules = (): readonly string[] => [process.execPath, ...preloadFlags(), modules];

export class CompileCache implements Disposable {
  #child: ReturnType<typeof spawn> | undefined;
  #isBegun = false;
  #isOver = false;
  #program: JobProgram | undefined;

  /** The first job starts as it can, and has the rest prepared beside it. */
  program(): JobProgram {
    if (!this.#isBegun) void this.#prepare();
    return this.#program ?? { argv: asModules(), env: {} };
  }

  async #prepare(): Promise<void> {
    this.#isBegun = true;
    const argv = (await isCurrent(root)) ? [process.execPath, join(bundle, "host.js")] : asModules();
    this.#program = { argv, env: {} };
    if (!this.#isOver) this.#fill(argv);
  }

  /** Where there is no request the program ends at once. Where the folder cannot be written, jobs go without. */
  #fill([program = "", ...args]: readonly string[]): void {
    let empty: string;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o755 });
      empty = mkdtempSync(join(tmpdir(), "millrace-job-"));
    } catch {
      return;
    }
    const env = { ...process.env, NODE_COMPILE_CACHE: folder, [folderVariable]: empty };
    const options = { cwd: empty, env, stdio: "ignore", timeout: fillMsMax } as const;
    this.#child = spawn(program, args, options);
    this.#child.on("error", () => {});
    this.#child.on("close", (code) => {
      rmSync(empty, { recursive: true, force: true });
      if (code === noRequestCode) this.#program = { argv: [program, ...args], env: { NODE_COMPILE_CACHE: folder } };
    });
    this.#child.unref();
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#child?.kill("SIGKILL");
  }
}

/** Whether the one file was made of what is here now. */
export async function isCurrent(root: string): Promise<boolean> {
  try {
    const made = JSON.parse(await readFile(join(root, "dist", "jobs", "inputs.json"), "utf8")) as Record<
      string,
      string
    >;
    for (const [name, hash] of Object.entries(made)) {
      const text = await readFile(join(root, name));
      if (createHash("sha256").update(text).digest("hex") !== hash) return false;
    }
    return true;
  } catch {
    return false;
  }
}
