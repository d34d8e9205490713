/** The program as a separate process: to be killed, and started again. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endChild } from "#testing/end-child.ts";
import { freePort } from "#testing/free-port.ts";
import { until } from "#testing/until.ts";

const main = join(import.meta.dirname, "../../src/cli/main.ts");

export class Program {
  readonly address: string;
  readonly #folder: string;
  readonly #said: string[] = [];
  #child: ChildProcess | undefined;

  private constructor(folder: string, address: string) {
    this.#folder = folder;
    this.address = address;
  }

  /** `actionsIn` is a folder that other users can enter. */
  static async open(folder: string, actionsIn: string): Promise<Program> {
    const program = new Program(folder, `127.0.0.1:${await freePort()}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      join(folder, "config.yaml"),
      JSON.stringify({ edge: { listen: [program.address] }, worker: { slots: 4, actionsIn } }),
    );
    await program.start();
    return program;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [main, "up", "--data", this.#folder], { stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => this.#said.push(String(part)));
    const isReady = (): Promise<boolean> =>
      fetch(`http://${this.address}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(`the node is up: ${this.log.slice(-500)}`, isReady, { limitMs: 60_000, everyMs: 100 });
  }

  get log(): string {
    return this.#said.join("");
  }

  /** Like a power failure, for this process. */
  async kill(): Promise<void> {
    await endChild(this.#child, "SIGKILL");
  }

  async stop(): Promise<void> {
    await endChild(this.#child, "SIGTERM");
  }
}
