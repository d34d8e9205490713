/** A stock serf agent on this machine, and the output of its commands. */
import { execFile, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { freePort } from "#testing/free-port.ts";
import { until } from "#testing/until.ts";

export const serfMissing: string | false = spawnSync("serf", ["version"]).error
  ? "needs serf: not on the path (Debian: apt-get install serf)"
  : false;

export type SerfMember = { readonly status: string; readonly tags: Readonly<Record<string, string>> };

export class SerfAgent implements AsyncDisposable {
  readonly name: string;
  readonly address: string;
  readonly #rpc: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  log = "";

  private constructor(name: string, address: string, rpc: string, args: readonly string[]) {
    this.name = name;
    this.address = address;
    this.#rpc = rpc;
    const all = ["agent", `-node=${name}`, `-bind=${address}`, `-rpc-addr=${rpc}`, "-profile=local", ...args];
    this.#child = spawn("serf", [...all, "-log-level=debug", "-tag", "role=lab"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (chunk: Buffer) => void (this.log += chunk.toString()));
    this.#ended = new Promise((resolve) => this.#child.once("close", () => resolve()));
  }

  static async start(name: string, ...args: readonly string[]): Promise<SerfAgent> {
    const [port, rpcPort] = [await freePort(), await freePort()];
    const agent = new SerfAgent(name, `127.0.0.1:${port}`, `127.0.0.1:${rpcPort}`, args);
    await until(`the agent ${name} is up`, async () => (await agent.#ask("members")).code === 0, { limitMs: 60_000 });
    return agent;
  }

  async join(address: string): Promise<void> {
    await this.says("join", address);
  }

  async members(): Promise<ReadonlyMap<string, SerfMember>> {
    const { output } = await this.#ask("members", "-format=json");
    const found = JSON.parse(output) as { members: (SerfMember & { readonly name: string })[] };
    return new Map(found.members.map(({ name, status, tags }) => [name, { status, tags }]));
  }

  async status(name: string): Promise<string | undefined> {
    return (await this.members()).get(name)?.status;
  }

  /** What `serf info` says of one part, such as its logical clocks. */
  async info(part: string): Promise<Readonly<Record<string, string>>> {
    const found = JSON.parse(await this.says("info", "-format=json")) as Record<string, Record<string, string>>;
    return found[part] ?? {};
  }

  /** One of serf's commands, which must succeed. */
  async says(command: string, ...args: readonly string[]): Promise<string> {
    const { code, output } = await this.#ask(command, ...args);
    if (code !== 0) throw new Error(`serf ${command}: ${output}`);
    return output;
  }

  /** Lines above the level of information. */
  complaints(): readonly string[] {
    const ownEnd = /Serf shutdown detected/; // what it logs when it was told to leave
    return this.log.split("\n").filter((line) => /\[(WARN|ERR|ERROR)\]/.test(line) && !ownEnd.test(line));
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #ask(command: string, ...args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
    return new Promise((resolve) => {
      execFile("serf", [command, `-rpc-addr=${this.#rpc}`, ...args], { timeout: 30_000 }, (error, stdout, stderr) =>
        resolve({ code: error ? 1 : 0, output: stdout + stderr }),
      );
    });
  }
}
