/** Releases of a small service to real agents, and what must hold on every machine whatever happened. */
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { parseManifest, segmentBytes } from "#doors/deploy/manifest/manifest.ts";
import { KeyRing, type Signed } from "#doors/deploy/signing/signing.ts";
import { until } from "#testing/until.ts";
import { DeployFleet } from "#e2e/deploy/fleet.ts";

const limits = { limitMs: 240_000, everyMs: 50 };
const dataBytes = 6 * 1024 * 1024;

const service = (waves: string): string => `
service: web
build: { run: "mkdir out && cp run.sh data.bin out/", output: out }
run:
  exec: [sh, run.sh]
  probe: { exec: "true", within: 60s, every: 50ms }
  drain: 300ms
targets: { labels: [role=web], regions: [eu] }
health: { silentMax: 60%, silentAfter: 60s, failedMax: 0% }
waves: ${waves}
`;

export class ChaosLab implements AsyncDisposable {
  readonly fleet: DeployFleet;
  readonly machines: string[];
  readonly violations: string[] = [];
  #versions = 0;

  private constructor(fleet: DeployFleet, machines: readonly string[]) {
    this.fleet = fleet;
    this.machines = [...machines];
  }

  static async open(machines: readonly string[], config: object = {}): Promise<ChaosLab> {
    const fleet = await DeployFleet.open(machines, config);
    const lab = new ChaosLab(fleet, machines);
    await until("all machines are attached", async () => (await lab.#seen()).length === machines.length, limits);
    return lab;
  }

  /** Commits a new version, with bytes that no machine has, and releases it. Answers with the job. */
  async release(waves = '[{ share: "100%" }]', bytes = dataBytes): Promise<string> {
    this.#versions += 1;
    writeFileSync(join(this.fleet.repository, "data.bin"), randomBytes(bytes));
    writeFileSync(join(this.fleet.repository, "run.sh"), `# ${this.#versions}\nexec sleep 100000\n`);
    const text = service(waves);
    const sha = this.fleet.commit(text, "");
    const body = { service: parse(text) as object, sha, repository: this.fleet.repository };
    const { job } = (await this.call("POST", "/v1/deploy/releases", body)) as { job: string };
    return job;
  }

  async rollback(): Promise<string> {
    const path = "/v1/deploy/services/web/rollback";
    const { job } = (await this.call("POST", path, { regions: ["eu"] })) as { job: string };
    return job;
  }

  async call(method: string, path: string, body?: object): Promise<unknown> {
    const response = await fetch(`http://${this.fleet.node.address}${path}`, {
      method,
      headers: { ...this.fleet.node.headers, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : (JSON.parse(text) as unknown);
  }

  /** Waits for the job's end, also while the node is away now and then. */
  async ended(job: string): Promise<string> {
    let phase = "";
    const isOver = async (): Promise<boolean> =>
      /^(SUCCEEDED|FAILED|CANCELLED)$/.test((phase = await this.fleet.phase(job).catch(() => "")));
    await until(`${job} has ended`, isOver, limits);
    return phase;
  }

  /** All machines answer with the newest goal's version. */
  async converged(): Promise<string> {
    let [wanted, told] = ["", ""];
    const isThere = async (): Promise<boolean> => {
      const seen = await this.#seen().catch(() => []);
      wanted = (await this.goal().catch(() => undefined))?.manifest ?? "";
      told = JSON.stringify(seen.map(({ machine, reports }) => [machine, reports[0]]));
      return (
        wanted !== "" &&
        seen.length === this.machines.length &&
        seen.every(({ reports: [report] }) => report?.running === wanted && report.state === "healthy")
      );
    };
    await until("the fleet runs the newest goal", isThere, limits).catch((error: unknown) => {
      throw new Error(`${String(error)}; wanted ${wanted}, seen ${told}`, { cause: error });
    });
    return wanted;
  }

  isStaging(machine: string): boolean {
    const versions = join(this.fleet.folder, machine, "services", "web", "versions");
    return existsSync(versions) && readdirSync(versions).some((name) => name.endsWith(".staging"));
  }

  async goal(): Promise<{ readonly manifest: string | null; readonly version: number } | undefined> {
    const shown = (await this.call("GET", "/v1/deploy/services/web?regions=eu")) as {
      regions: { manifest: string | null; version: number }[];
    };
    return shown.regions[0];
  }

  /** What must hold at every moment, with the agent alive or dead. */
  async check(when: string): Promise<void> {
    const keys = (await this.call("GET", "/v1/deploy/keys")) as { keys: string[] };
    for (const machine of this.machines)
      for (const wrong of brokenOn(join(this.fleet.folder, machine), new KeyRing(keys.keys)))
        this.violations.push(`${when}: ${machine}: ${wrong}`);
  }

  /** No two copies of the service, and none of a version that was given up. */
  checkProcesses(when: string): void {
    for (const machine of this.machines) {
      const found = processesBelow(join(this.fleet.folder, machine));
      if (found.length !== 1) this.violations.push(`${when}: ${machine} has ${found.length} processes of the service`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fleet[Symbol.asyncDispose]();
  }

  async #seen(): Promise<readonly Seen[]> {
    return ((await this.call("GET", "/v1/deploy/machines")) as { machines: Seen[] }).machines;
  }
}

type Seen = {
  readonly machine: string;
  readonly reports: readonly { readonly state: string; readonly running: string | null }[];
};

/** Torn files, folders that are complete by name only, and processes of bytes that no key signed. */
function* brokenOn(root: string, ring: KeyRing): Generator<string> {
  const folder = join(root, "services", "web");
  const versions = join(folder, "versions");
  if (!existsSync(versions)) return;
  for (const name of ["goal.json", "memory.json", "process.json"]) {
    const path = join(folder, name);
    if (existsSync(path) && !isJson(readFileSync(path, "utf8"))) yield `${name} is torn`;
  }
  for (const name of readdirSync(versions))
    if (/^sha256-[0-9a-f]+$/.test(name)) yield* brokenVersion(versions, name, ring);
  const link = join(folder, "current");
  if (existsSync(link) || isLink(link)) {
    const target = readlinkSync(link);
    if (!/^versions\/sha256-[0-9a-f]+$/.test(target)) yield `current points to ${target}`;
    else if (!existsSync(join(folder, target))) yield `current points to ${target}, which is not there`;
  }
  for (const cwd of processesBelow(root)) {
    const name = cwd.split("/").at(-1) ?? "";
    if (!/^sha256-[0-9a-f]+$/.test(name)) yield `a process runs in ${cwd}`;
  }
}

function* brokenVersion(versions: string, name: string, ring: KeyRing): Generator<string> {
  const document = join(versions, `${name}.json`);
  if (!existsSync(document)) return yield `${name} has no manifest`;
  const text = readFileSync(document, "utf8");
  if (createHash("sha256").update(text).digest("hex") !== name.replace("sha256-", ""))
    return yield `${name}.json does not have its digest`;
  for (const file of parseManifest(ring.open(JSON.parse(text) as Signed, "manifest")).files) {
    const path = join(versions, name, file.path);
    if (!existsSync(path) || statSync(path).size !== file.sizeBytes) return yield `${name}/${file.path} is not whole`;
    const bytes = readFileSync(path);
    for (const [index, segment] of file.segments.entries()) {
      const part = bytes.subarray(index * segmentBytes, (index + 1) * segmentBytes);
      if (createHash("sha256").update(part).digest("hex") !== segment.split("/")[0])
        yield `${name}/${file.path} has bytes that were not signed`;
    }
  }
}

/** The folders that the service's processes on this machine were started in. */
function processesBelow(root: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const cwd = readlinkSync(`/proc/${pid}/cwd`);
        const isService = readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("sleep\0");
        return isService && cwd.startsWith(`${root}/services/`) ? [cwd] : [];
      } catch {
        return [];
      }
    });
}

const isLink = (path: string): boolean => {
  try {
    readlinkSync(path);
    return true;
  } catch {
    return false;
  }
};

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
