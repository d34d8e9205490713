/**
 * Compiled modules of the program that runs jobs, kept beside the package: a job then starts with a third of the CPU.
 * The node fills the folder itself, before jobs use it. In a sandbox jobs can only read it: who could write to it could
 * run code in the jobs of others.
 */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { preloadFlags } from "#worker/process/preload-flags.ts";

const folder = fileURLToPath(new URL("../../../../node_modules/.cache/millrace/jobs", import.meta.url));
const modules = fileURLToPath(new URL("./host-modules.ts", import.meta.url));
const fillMsMax = 60_000;

export class CompileCache implements Disposable {
  #child: ReturnType<typeof spawn> | undefined;
  #isBegun = false;
  #isFilled = false;

  /** Variables for the job's program, not for its steps. The first job goes without, and has the cache filled. */
  env(): Readonly<Record<string, string>> {
    if (this.#isFilled) return { NODE_COMPILE_CACHE: folder };
    if (!this.#isBegun) this.#fill();
    return {};
  }

  /** Beside other work. Where the package's folder cannot be written, jobs go without. */
  #fill(): void {
    this.#isBegun = true;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o755 });
    } catch {
      return;
    }
    const env = { ...process.env, NODE_COMPILE_CACHE: folder };
    const options = { env, stdio: "ignore", timeout: fillMsMax } as const;
    this.#child = spawn(process.execPath, [...preloadFlags(), modules], options);
    this.#child.on("error", () => {});
    this.#child.on("exit", (code) => (this.#isFilled = code === 0));
    this.#child.unref();
  }

  [Symbol.dispose](): void {
    this.#child?.kill("SIGKILL");
  }
}
