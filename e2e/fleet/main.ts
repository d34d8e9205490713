// The build that will not die: a real Bazel builds through a TCP balancer on three real nodes, while these are killed,
// put to sleep and cut off from their database. docs/how-to/several-nodes.md says how to use it.
import { randomUUID } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Random } from "#base/random.ts";
import { startPostgres, type PostgresServer } from "#test/postgres.ts";
import { until } from "#test/until.ts";
import { Bazel, bazelMissing } from "#e2e/bazel/bazel.ts";
import { Processes } from "#e2e/chaos/processes.ts";
import { Balancer } from "./balancer.ts";
import { judgeReads } from "./bazel-reads.ts";
import { Fleet, type FleetPlan } from "./fleet.ts";
import { actionsIn, makeSacks, sacksTarget, type Sacks } from "./sacks.ts";
import { Scissors } from "./scissors.ts";
import { trouble, type Troubles } from "./trouble.ts";
import { auditNames, findings } from "./verdict.ts";
import { Wires, wiresMissing } from "./wires.ts";

const { values: options } = parseArgs({
  options: {
    builds: { type: "string", default: "10" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
    width: { type: "string", default: "50" },
    layers: { type: "string", default: "5" },
    /** Each node in a network of its own, which is cut now and then. Needs root. */
    cut: { type: "boolean", default: false },
    /** Of the frames that bring Bazel something, the share after which its connection breaks; such as 0.01. */
    snip: { type: "string", default: "0" },
    calm: { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
  },
});

const plan: FleetPlan = { nodes: 3, shards: 32, leaseMs: 3_000, slots: 4 };
const sacks: Sacks = { layers: Number(options.layers), width: Number(options.width), seconds: 1 };
/** What Bazel may be told about servers that come and go; all of it is in its manual. */
const patience = ["--remote_retries=100", "--grpc_keepalive_time=2s", "--grpc_keepalive_timeout=3s"];

async function main(): Promise<void> {
  const postgres = await startPostgres();
  const missing = bazelMissing() ?? (options.cut ? wiresMissing() : undefined) ?? postgres.skip;
  if (missing !== false) throw new Error(missing);
  const processes = new Processes();
  let failed = 0;
  try {
    for (let build = 1; build <= Number(options.builds); build += 1) {
      const random = new Random(`${options.seed}/${build}`);
      const verdict = await once(build, postgres.server(), processes, random);
      console.log(`fleet build ${build} of ${options.builds} (seed ${options.seed}): ${verdict.line}`);
      for (const violation of verdict.violations.slice(0, 20)) console.log(`  VIOLATION ${violation}`);
      if (verdict.violations.length > 0) failed += 1;
    }
  } finally {
    await processes.close();
    await postgres.stop();
  }
  console.log(failed === 0 ? "fleet: every build was well" : `fleet: ${failed} builds were not`);
  if (failed > 0) process.exitCode = 1;
}

async function once(build: number, postgres: PostgresServer, processes: Processes, random: Random) {
  const say = (line: string): void => console.log(`  ${new Date().toISOString().slice(11, 23)} ${line}`);
  const database = await postgres.freshDatabase();
  using wires = options.cut ? new Wires() : undefined;
  const fleet = await Fleet.start(plan, { processes, database, wires });
  await using _fleet = fleet;
  await auditNames(database);
  const share = Number(options.snip);
  await using balancer = await Balancer.open(
    fleet.members.map(({ edge }) => edge),
    share > 0 ? { scissors: () => new Scissors({ random: random.fork("snip"), share }) } : {},
  );
  const workspace = makeSacks(fleet.folder, randomUUID(), sacks);
  const bazel = new Bazel(workspace, join(fleet.folder, "bazel"));
  const calls = join(fleet.folder, "logs", "bazel-calls");
  const end = new AbortController();
  const startedMs = performance.now();
  const violations: string[] = [];
  const none: Troubles = { kills: 0, stops: 0, outages: 0, cuts: 0 };
  const troubled = options.calm
    ? Promise.resolve(none)
    : trouble({ fleet, postgres, random, say, wires }, end.signal).catch((error: unknown) => {
        violations.push(String(error)); // a node that did not come back, for one
        return none;
      });
  try {
    const flags = [`--remote_executor=grpc://${balancer.address}`, "--spawn_strategy=remote", "--jobs=24"];
    // Every call that Bazel made, for whoever has to find out what went wrong.
    const record = `--experimental_remote_grpc_log=${calls}`;
    const { output, processes: run } = await bazel.build([sacksTarget], [...flags, ...patience, record]);
    const actions = (run.get("remote") ?? 0) + (run.get("remote cache hit") ?? 0);
    if (actions !== actionsIn(sacks)) violations.push(`${actions} actions of ${actionsIn(sacks)} were run`);
    violations.push(...visible(output));
    const made = readFileSync(join(workspace.root, "bazel-bin/sacks/all_of_them.txt"), "utf8");
    const lines = made.trimEnd().split("\n").length;
    if (lines !== sacks.layers * sacks.width) violations.push(`what was built has ${lines} lines`);
  } catch (error) {
    violations.push(String(error).slice(-2_000));
  }
  const tookMs = performance.now() - startedMs;
  end.abort();
  const troubles = await troubled;
  const found = await untilEnded(database, fleet);
  violations.push(...found.violations);
  await bazel.stop().catch(() => {});
  const {
    resumed,
    calledOff,
    violations: wrong,
  } = judgeReads(existsSync(calls) ? readFileSync(calls) : Buffer.alloc(0));
  violations.push(...wrong);
  if (violations.length > 0 || options.keep) keep(fleet, build, say);
  const { jobs, attempts, commits, writes } = found;
  const snips = balancer.cuts;
  const reads = { readsResumed: resumed, readsCalledOff: calledOff };
  const seconds = Math.round(tookMs / 1_000);
  const figures = { seconds, ...troubles, snips, ...reads, jobs, attempts, commits, writes };
  const line = Object.entries({ ...figures, violations: violations.length });
  return { line: line.map(([name, value]) => `${name}=${value}`).join(" "), violations };
}

/** Jobs that nobody waits for any more are cancelled after a grace; then nothing is left open. */
async function untilEnded(database: string, { shared, plan: { shards } }: Fleet) {
  let found = await findings(database, shared, shards);
  const isOver = async (): Promise<boolean> => {
    found = await findings(database, shared, shards);
    return !found.violations.some((violation) => violation.includes("has not ended"));
  };
  await until("every job has ended", isOver, { limitMs: 90_000, everyMs: 1_000 }).catch(() => {});
  return found;
}

/** What whoever sits before the build would be troubled by. */
const visible = (output: string): readonly string[] =>
  output.split("\n").filter((line) => /^(ERROR|WARNING|FAILED)/.test(line));

function keep({ folder }: Fleet, build: number, say: (line: string) => void): void {
  const to = mkdtempSync(join(tmpdir(), `millrace-fleet-logs-${build}-`));
  if (existsSync(join(folder, "logs"))) cpSync(join(folder, "logs"), to, { recursive: true });
  say(`the nodes' logs are in ${to}`);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(1));
await main();
