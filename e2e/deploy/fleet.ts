/** A node, a git repository with a service, and agents: all real processes. */
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clearAway } from "#testing/clear-away.ts";
import { endChild } from "#testing/end-child.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";

export type ShownRelease = {
  readonly stages: readonly { readonly name: string; readonly why: string }[];
  readonly regions: readonly { readonly region: string; readonly version: number; readonly isGoal: boolean }[];
};

const main = join(import.meta.dirname, "../../src/cli/main.ts");
const liar = join(import.meta.dirname, "lying-agent.ts");

export type MachineView = {
  readonly machine: string;
  readonly reports: readonly { readonly state: string; readonly running: string | null; readonly why?: string }[];
};

export class DeployFleet implements AsyncDisposable {
  readonly folder: string;
  readonly node: NodeProcess;
  readonly #agents = new Map<string, ChildProcess>();

  private constructor(folder: string, node: NodeProcess) {
    this.folder = folder;
    this.node = node;
  }

  static async open(machines: readonly string[], config: object = {}): Promise<DeployFleet> {
    const folder = mkdtempSync(join(tmpdir(), "millrace-deploy-"));
    const node = await NodeProcess.open(join(folder, "node"), { worker: { slots: 2 }, ...config });
    const fleet = new DeployFleet(folder, node);
    mkdirSync(fleet.repository);
    fleet.#git("init", "--quiet");
    for (const machine of machines) fleet.startAgent(machine);
    return fleet;
  }

  get repository(): string {
    return join(this.folder, "repository");
  }

  /** Commits a version whose process prints `text` and stays, or does what `body` says. */
  commit(service: string, body: string, file = "server.mjs"): string {
    writeFileSync(join(this.repository, "service.yaml"), service);
    writeFileSync(join(this.repository, file), body);
    this.#git("add", "--all");
    this.#git("commit", "--quiet", "--message", "a version");
    return this.#git("rev-parse", "HEAD").trim();
  }

  /** `wrongShare` of the units that it sends to others are wrong. */
  startAgent(machine: string, wrongShare = 0, region = "eu", env: Readonly<Record<string, string>> = {}): void {
    const at = ["--data", this.node.folder, "--machine", machine, "--region", region, "--label", "role=web"];
    const root = join(this.folder, machine);
    const honest = [main, "agent", "run", ...at, "--root", root];
    const lying = [liar, this.node.folder, machine, root, String(wrongShare)];
    const child = spawn(process.execPath, wrongShare > 0 ? lying : honest, {
      stdio: ["ignore", "ignore", openSync(join(this.folder, `${machine}.log`), "a")],
      env: { ...process.env, ...env },
    });
    this.#agents.set(machine, child);
  }

  agentPid(machine: string): number | undefined {
    return this.#agents.get(machine)?.pid;
  }

  /** Through another address, such as one that a test cuts. */
  startAgentAt(machine: string, url: string, region = "eu"): void {
    const at = ["--server", url, "--machine", machine, "--region", region, "--label", "role=web"];
    const child = spawn(process.execPath, [main, "agent", "run", ...at, "--root", join(this.folder, machine)], {
      stdio: ["ignore", "ignore", openSync(join(this.folder, `${machine}.log`), "a")],
      env: { ...process.env, MILLRACE_TOKEN: this.node.headers.authorization.replace("Bearer ", "") },
    });
    this.#agents.set(machine, child);
  }

  async killAgent(machine: string): Promise<void> {
    await endChild(this.#agents.get(machine), "SIGKILL");
  }

  /** What a command prints, as lines. */
  millrace(...args: readonly string[]): readonly string[] {
    const out = execFileSync(process.execPath, [main, ...args, "--data", this.node.folder], { encoding: "utf8" });
    return out.split("\n").filter((line) => line !== "");
  }

  /** What a command prints, also where it exits with 1. */
  said(...args: readonly string[]): string {
    return spawnSync(process.execPath, [main, ...args, "--data", this.node.folder], { encoding: "utf8" }).stdout;
  }

  async shown(job: string): Promise<ShownRelease> {
    const url = `http://${this.node.address}/v1/deploy/releases/${job}`;
    return (await (await fetch(url, { headers: this.node.headers })).json()) as ShownRelease;
  }

  machines(): readonly MachineView[] {
    return this.millrace("deploy", "machines", "--json").map((line) => JSON.parse(line) as MachineView);
  }

  async phase(job: string): Promise<string> {
    const response = await fetch(`http://${this.node.address}/v1/jobs/${job}`, { headers: this.node.headers });
    return ((await response.json()) as { phase: string }).phase;
  }

  servicePid(machine: string, service = "web"): number | undefined {
    const path = join(this.folder, machine, "services", service, "process.json");
    return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as { pid?: number }).pid : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const [machine, child] of this.#agents) {
      await endChild(child, "SIGKILL");
      for (const service of ["web", "api"]) {
        const pid = this.servicePid(machine, service);
        if (pid !== undefined) killGroup(pid);
      }
    }
    await this.node[Symbol.asyncDispose]();
    clearAway(this.folder);
  }

  #git(...args: readonly string[]): string {
    const who = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"];
    return execFileSync("git", [...who, ...args], { cwd: this.repository, encoding: "utf8" });
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
