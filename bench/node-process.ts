/** A node in a process of its own, in a folder of its own, as `millrace up` starts one: on SQLite, with one shard. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Api } from "#cli/api.ts";
import { callEndpoint } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { freePort } from "#testing/free-port.ts";
import { isOpen } from "#bench/edge/contestants.ts";
import { processCpuUs } from "./measure.ts";

const root = join(import.meta.dirname, "..");

export class NodeProcess implements AsyncDisposable {
  readonly port: number;
  readonly data: string;
  readonly #child;

  private constructor(port: number, settings: readonly string[]) {
    this.port = port;
    this.data = mkdtempSync(join(tmpdir(), "millrace-bench-node-"));
    const all = [`edge.listen=127.0.0.1:${port}`, "cluster.shards=1", ...settings];
    const args = ["--max-semi-space-size=64", join(root, "src/cli/main.ts"), "up", "--data", this.data];
    this.#child = spawn(process.execPath, [...args, ...all.flatMap((one) => ["--set", one])], {
      stdio: ["ignore", "ignore", "inherit"],
    });
  }

  static async start(settings: readonly string[]): Promise<NodeProcess> {
    const node = new NodeProcess(await freePort(), settings);
    for (let tries = 0; !(await isOpen(node.port)); tries += 1) {
      if (node.#child.exitCode !== null || tries > 2_000) throw new Error("the node does not listen");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return node;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get token(): string {
    return readFileSync(join(this.data, "operator.token"), "utf8").trim();
  }

  cpuUs(): number {
    return processCpuUs(this.pid);
  }

  readonly api: Api = async (endpoint, request) =>
    await callEndpoint((path, init) => this.#ask(path, init), endpoint, request);

  /** Its folder stays until it is disposed of. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
  }

  async #ask(path: string, { headers, ...init }: RequestInit): Promise<Response> {
    const authorization = `Bearer ${this.token}`;
    return await fetch(`http://127.0.0.1:${this.port}${path}`, {
      ...init,
      headers: { ...(headers as Record<string, string> | undefined), authorization },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    clearAway(this.data);
  }
}
