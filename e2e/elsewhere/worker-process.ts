/** For tests: `millrace worker` as a process of its own. */
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { endChild } from "#testing/end-child.ts";
import { until } from "#testing/until.ts";

const main = join(import.meta.dirname, "../../src/cli/main.ts");

export class RegisteredProcess implements AsyncDisposable {
  readonly #args: readonly string[];
  readonly #token: string;
  readonly #command: string;
  #child: ChildProcess | undefined;
  said = "";

  constructor(token: string, args: readonly string[], command = "worker") {
    this.#command = command;
    this.#token = token;
    this.#args = args;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  start(): this {
    this.said = "";
    const env = { ...process.env, MILLRACE_WORKER_TOKEN: this.#token };
    const child = spawn(process.execPath, [main, this.#command, ...this.#args], {
      stdio: ["ignore", "pipe", "pipe"],
      env,
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (this.said += String(part)));
    return this;
  }

  async isUp(): Promise<this> {
    await until(
      "the worker is there",
      () => {
        if (this.#child?.exitCode !== null) throw new Error(`the worker ended by itself: ${this.said}`);
        return this.said.includes("slots");
      },
      { limitMs: 60_000, everyMs: 50 },
    );
    return this;
  }

  /** Its exit code, once it has ended by itself. */
  async ended(): Promise<number> {
    await until(`the worker ends by itself; it said ${this.said}`, () => this.#child?.exitCode !== null, {
      limitMs: 60_000,
      everyMs: 50,
    });
    return this.#child?.exitCode ?? -1;
  }

  signal(how: "SIGSTOP" | "SIGCONT"): void {
    this.#child?.kill(how);
  }

  async end(how: NodeJS.Signals = "SIGTERM"): Promise<void> {
    await endChild(this.#child, how);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}
