/** An installed agent: it starts by itself, is one, stays small, and changes to its own next version or back. */
import { equal, match, ok } from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { bundleAgent } from "#testing/agent-program.ts";
import { until } from "#testing/until.ts";
import { DeployFleet } from "./fleet.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const limits = { limitMs: 120_000, everyMs: 200 };
const main = join(import.meta.dirname, "../../src/cli/main.ts");
/** How long a new agent may take to reach a node. */
const patient = "60s";
const self = (within: string): string => `
service: millrace-agent
build: { run: "mkdir out && cp agent.cjs out/", output: out }
run:
  exec: ["sh", "-c", 'exec "$MILLRACE_NODE" --max-semi-space-size=1 agent.cjs "$0"']
  probe: { exec: "true", within: ${within} }
targets: { labels: [role=web], regions: [eu] }
health: { silentAfter: 60s }
`;
const memoryMbMax = 80;

type Status = {
  readonly pid: number;
  readonly manifest: string | null;
  readonly memoryBytes: number;
  readonly isWell: boolean;
  readonly services: readonly { readonly service: string; readonly state: string; readonly running: string | null }[];
};

describe("an installed agent", { skip, timeout: 480_000 }, () => {
  let fleet: DeployFleet;
  let root: string;
  let agentProgram: string;
  before(async () => {
    agentProgram = bundleAgent();
    fleet = await DeployFleet.open([]);
    root = join(fleet.folder, "installed");
    writeFileSync(join(fleet.folder, "token"), `${fleet.node.headers.authorization.replace("Bearer ", "")}\n`);
  });
  after(async () => {
    spawnSync(process.execPath, [main, "agent", "stop", "--root", root]);
    await fleet[Symbol.asyncDispose]();
  });

  const agent = (...words: readonly string[]) =>
    spawnSync(process.execPath, [main, "agent", ...words, "--root", root], { encoding: "utf8" });
  const install = (): string => {
    const at = ["--join", `http://${fleet.node.address}`, "--token-file", join(fleet.folder, "token")];
    const { stdout, stderr, status } = agent(
      "install",
      ...at,
      "--machine",
      "m1",
      "--region",
      "eu",
      "--label",
      "role=web",
    );
    equal(status, 0, `${stdout}${stderr}${logOf(root)}`);
    return stdout;
  };
  const status = (): Status => JSON.parse(agent("status", "--json").stdout) as Status;
  const running = (): string | null | undefined =>
    status().services.find(({ service }) => service === "millrace-agent")?.running;
  const release = async (): Promise<string> => {
    const [job = ""] = fleet.millrace("deploy", "release", join(fleet.repository, "service.yaml"));
    let phase = "";
    await until(`${job} ended`, async () => /SUCC|FAIL/.test((phase = await fleet.phase(job))), limits);
    return phase;
  };
  const commit = (text: string, within = patient): void => {
    copyFileSync(agentProgram, join(fleet.repository, "agent.cjs"));
    writeFileSync(join(fleet.repository, "agent.cjs"), text);
    fleet.commit(self(within), "");
  };

  test("runs after `agent install`, which may be run again, and is small", async () => {
    match(install(), /its own supervisor|systemd/);
    const first = status();
    ok(first.isWell);
    match(install(), /m1 in eu/);
    ok(status().pid !== first.pid);
    const key = readFileSync(join(root, "machine-key"), "utf8");
    install();
    equal(readFileSync(join(root, "machine-key"), "utf8"), key, "the machine keeps its key");
    await until("it is attached", () => fleet.machines().length === 1, limits);
  });

  test("DEPLOY-35: refuses a second one in its folder, and is started again when it is killed", async () => {
    const second = spawnSync(process.execPath, [agentProgram, root], { encoding: "utf8", timeout: 20_000 });
    equal(second.status, 1);
    match(second.stderr, /another agent looks after this folder/);
    const { pid } = status();
    process.kill(pid, "SIGKILL");
    await until("another one runs", () => status().isWell && status().pid !== pid, limits);
  });

  test("DEPLOY-35: changes to its own next version in a release of its own", async () => {
    commit(`${readFileSync(agentProgram, "utf8")}\n// another version\n`);
    const before = status().pid;
    equal(await release(), "SUCCEEDED", logOf(root));
    await until("its status says so", () => status().manifest !== null && running() === status().manifest, limits);
    const now = status();
    ok(now.pid !== before);
    console.log(`# resident memory: ${Math.round(memoryMbOf(now.pid))} MB`);
    ok(memoryMbOf(now.pid) < memoryMbMax, `${memoryMbOf(now.pid)} MB`);
  });

  test("DEPLOY-35: goes back from one that ends, and from one that hangs, and the releases fail", async () => {
    const good = running();
    ok(typeof good === "string");
    commit("process.exit(3);\n");
    equal(await release(), "FAILED");
    await until("the good one runs", () => status().isWell && running() === good, limits);
    commit("setInterval(() => {}, 1000);\n", "10s");
    equal(await release(), "FAILED");
    await until("the good one runs", () => status().isWell && running() === good, limits);
    const agents = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n");
    equal(agents.filter((line) => line.includes(".cjs") && line.includes(root)).length, 1, "never two agents");
  });
});

const logOf = (root: string): string => {
  try {
    return readFileSync(join(root, "agent.log"), "utf8").slice(-3_000);
  } catch {
    return "no log";
  }
};

const memoryMbOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
