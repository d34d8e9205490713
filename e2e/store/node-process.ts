/** The program as a separate process with a given configuration: to be killed, stopped, starved, and observed. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { endChild } from "#testing/end-child.ts";
import { freePort } from "#testing/free-port.ts";
import { until } from "#testing/until.ts";

const main = join(import.meta.dirname, "../../src/cli/main.ts");
const saidMax = 2_000;

export class NodeProcess {
  readonly folder: string;
  readonly address: string;
  readonly client: GrpcClient;
  readonly #said: string[] = [];
  #child: ChildProcess | undefined;

  private constructor(folder: string, address: string, token: string | undefined) {
    this.folder = folder;
    this.address = address;
    const [host = "", port = ""] = address.split(":");
    this.client = new GrpcClient({
      clock,
      authority: address,
      connect: () => connectH2({ host, port: Number(port), clock }),
      ...(token !== undefined && { metadata: [["authorization", `Bearer ${token}`]] as const }),
    });
  }

  /** `config` as in the file, without the address to listen on. */
  static async open(folder: string, config: object, { token }: { readonly token?: string } = {}): Promise<NodeProcess> {
    const address = `127.0.0.1:${await freePort()}`;
    const node = new NodeProcess(folder, address, token);
    const { edge = {}, ...rest } = config as { readonly edge?: object };
    mkdirSync(folder, { recursive: true });
    const text = JSON.stringify({ worker: { enabled: false }, ...rest, edge: { listen: [address], ...edge } });
    writeFileSync(join(folder, "config.yaml"), text);
    await node.start();
    return node;
  }

  async start(): Promise<void> {
    // The flag of bin/millrace.js, whose own process would only wait for this one.
    const args = ["--max-semi-space-size=64", main, "up", "--data", this.folder];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part) => {
        this.#said.push(String(part));
        if (this.#said.length > saidMax) this.#said.shift();
      });
    const isReady = async (): Promise<boolean> => {
      if (child.exitCode !== null) throw new Error(`the node ended by itself:\n${this.log.slice(-2_000)}`);
      return await fetch(`http://${this.address}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    };
    await until(`the node at ${this.address} is up`, isReady, { limitMs: 180_000, everyMs: 50 }).catch((error) => {
      throw new Error(`${String(error)}; it said:\n${this.log.slice(-2_000)}`, { cause: error });
    });
  }

  /** Of its operator: with the token in its folder. */
  get headers(): { readonly authorization: string } {
    return { authorization: `Bearer ${readOwnerToken(dataFolder(this.folder))}` };
  }

  get log(): string {
    return this.#said.join("");
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Its memory; zero when it does not run. */
  memoryMb(): number {
    try {
      const status = readFileSync(`/proc/${this.#child?.pid}/status`, "utf8");
      return (Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024) / 1e6;
    } catch {
      return 0;
    }
  }

  /** CPU that it has used so far, all its threads. */
  cpuSeconds(): number {
    try {
      const stat = readFileSync(`/proc/${this.#child?.pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return (Number(fields[11]) + Number(fields[12])) / 100;
    } catch {
      return 0;
    }
  }

  /** Like a power failure, for this process. */
  async kill(): Promise<void> {
    await endChild(this.#child, "SIGKILL");
  }

  async stop(): Promise<void> {
    await endChild(this.#child, "SIGTERM");
  }

  /** It exists and does nothing, until it is continued. */
  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close();
    await this.kill();
  }
}
