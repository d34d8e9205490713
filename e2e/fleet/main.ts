// A real Bazel builds through a TCP balancer on three real nodes, while these are killed, suspended and cut off from
// their database. docs/how-to/several-nodes.md says how to use it.
import { randomUUID } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Random } from "#base/random.ts";
import { startPostgres, type PostgresServer } from "#testing/postgres.ts";
import { until } from "#testing/until.ts";
import { Bazel, bazelMissing } from "#e2e/bazel/bazel.ts";
import type { Workspace } from "#e2e/bazel/workspace.ts";
import { Processes } from "#e2e/chaos/processes.ts";
import { Balancer } from "./balancer.ts";
import { judgeReads } from "./bazel-reads.ts";
import { Fleet, type FleetPlan } from "./fleet.ts";
import { operationsAt } from "./operations.ts";
import { actionsIn, makeSacks, sacksTarget, type Sacks } from "./sacks.ts";
import { Scissors } from "./scissors.ts";
import { missed, type Wants } from "./trouble-plan.ts";
import { noTroubles, trouble } from "./trouble.ts";
import { auditNames, findings, type Sleep } from "./verdict.ts";
import { Wires, wiresMissing } from "./wires.ts";

const fullSize: Sacks = { layers: 5, width: 50, seconds: 1 };

const { values: options } = parseArgs({
  options: {
    builds: { type: "string", default: "10" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
    width: { type: "string", default: String(fullSize.width) },
    layers: { type: "string", default: String(fullSize.layers) },
    /** Each node in a separate network, which is cut now and then. Needs root. */
    cut: { type: "boolean", default: false },
    /** The share of DATA frames to Bazel after which its connection breaks; such as 0.01. */
    snip: { type: "string", default: "0" },
    calm: { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
  },
});

const plan: FleetPlan = { nodes: 3, shards: 32, leaseMs: 3_000, slots: 4 };
const sacks: Sacks = { ...fullSize, layers: Number(options.layers), width: Number(options.width) };
const wants: Wants = { isFullSize: actionsIn(sacks) >= actionsIn(fullSize), cuts: options.cut };
/** Bazel's settings for servers that come and go; all of them are in its manual. */
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
  const isUnderWay = async (): Promise<boolean> => (await operationsAt(fleet.client(fleet.member("n1")))).length > 0;
  const troubled = options.calm
    ? Promise.resolve(noTroubles())
    : trouble({ fleet, postgres, balancer, random, wants, isUnderWay, say, wires }, end.signal).catch(
        (error: unknown) => {
          violations.push(String(error)); // a node that did not come back, for example
          return noTroubles();
        },
      );
  violations.push(...(await buildOnce(bazel, workspace, { through: balancer.address, calls })));
  const tookMs = performance.now() - startedMs;
  end.abort();
  const { sleeps, ...troubles } = await troubled;
  const found = await untilEnded(database, fleet, sleeps);
  violations.push(...found.violations);
  const { jobs, attempts, commits, claimsLost, writes } = found;
  // A smaller build may end sooner than expected: then it proves less, and says so.
  const unseen = options.calm ? [] : missed({ ...troubles, claimsLost }, wants);
  if (wants.isFullSize) violations.push(...unseen.map((what) => `${what}: the build saw none`));
  await bazel.stop().catch(() => {});
  const {
    resumed,
    calledOff,
    violations: wrong,
  } = judgeReads(existsSync(calls) ? readFileSync(calls) : Buffer.alloc(0));
  violations.push(...wrong);
  if (violations.length > 0 || options.keep) keep(fleet, build, say);
  const snips = balancer.cuts;
  const reads = { readsResumed: resumed, readsCalledOff: calledOff };
  const seconds = Math.round(tookMs / 1_000);
  const figures = { seconds, ...troubles, claimsLost, snips, ...reads, jobs, attempts, commits, writes };
  const notProven = unseen.length > 0 ? { NOT_SEEN: unseen.join(",") } : {};
  return { line: lineOf({ ...figures, violations: violations.length, ...notProven }), violations };
}

const lineOf = (figures: Readonly<Record<string, number | string>>): string =>
  Object.entries(figures)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");

/** What was wrong with it. `calls` records every call that Bazel made, for the analysis of failures. */
async function buildOnce(
  bazel: Bazel,
  { root }: Workspace,
  { through, calls }: { readonly through: string; readonly calls: string },
): Promise<readonly string[]> {
  const flags = [`--remote_executor=grpc://${through}`, "--spawn_strategy=remote", "--jobs=24"];
  const record = `--experimental_remote_grpc_log=${calls}`;
  try {
    const { output, processes: run } = await bazel.build([sacksTarget], [...flags, ...patience, record]);
    const wrong = [...visible(output)];
    const actions = (run.get("remote") ?? 0) + (run.get("remote cache hit") ?? 0);
    if (actions !== actionsIn(sacks)) wrong.push(`${actions} actions of ${actionsIn(sacks)} were run`);
    const made = readFileSync(join(root, "bazel-bin/sacks/all_of_them.txt"), "utf8");
    const lines = made.trimEnd().split("\n").length;
    if (lines !== sacks.layers * sacks.width) wrong.push(`what was built has ${lines} lines`);
    return wrong;
  } catch (error) {
    return [String(error).slice(-2_000)];
  }
}

/** Jobs without clients are cancelled after a grace; then nothing is left open. */
async function untilEnded(database: string, { shared, plan: { shards } }: Fleet, sleeps: readonly Sleep[]) {
  let found = await findings(database, shared, { shards, sleeps });
  const isOver = async (): Promise<boolean> => {
    found = await findings(database, shared, { shards, sleeps });
    return !found.violations.some((violation) => violation.includes("has not ended"));
  };
  await until("every job has ended", isOver, { limitMs: 90_000, everyMs: 1_000 }).catch(() => {});
  return found;
}

/** What a user of the build would notice. */
const visible = (output: string): readonly string[] =>
  output.split("\n").filter((line) => /^(ERROR|WARNING|FAILED)/.test(line));

function keep({ folder }: Fleet, build: number, say: (line: string) => void): void {
  const to = mkdtempSync(join(tmpdir(), `millrace-fleet-logs-${build}-`));
  if (existsSync(join(folder, "logs"))) cpSync(join(folder, "logs"), to, { recursive: true });
  say(`the nodes' logs are in ${to}`);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(1));
await main();
