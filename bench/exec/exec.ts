/** What it costs to execute an action that does nothing, from the client's call to its answer. */
import { availableParallelism } from "node:os";
import { startPostgres, type PostgresServer } from "#testing/postgres.ts";
import { bareBwrap, besideBwrap } from "./bare-bwrap.ts";
import type { Sample } from "./load.ts";
import { ExecLoad, ExecNodes, type SandboxKind } from "./nodes.ts";
import { phases, phasesExplained, phasesOf, type Phases } from "./phases.ts";
import { median, percentile } from "#bench/measure.ts";
import type { Figure, Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";

export const exec: Suite = {
  name: "exec",
  about: "remote execution of actions that do nothing: rate, round trip and CPU, on one node and on three",
  notMeasured: [
    "what actions do: compilers, outputs, what they print",
    "inputs that have to be fetched from elsewhere: all trees are cached",
    "nodes on machines of their own: three share these cores with their client and PostgreSQL",
    "CPU of a lane's shell that is used once only, as where there are neither users nor control groups",
  ],
  async run(report, { smoke }) {
    const sizes = smoke ? brief : full;
    // Nodes end with this process, as part of its exit.
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => process.exit(1));
    const load = new ExecLoad();
    const postgres = await startPostgres();
    try {
      const bare: number[] = [];
      const beside: Beside = { rates: [], ownMs: [] };
      const bench = { report, load, sizes, bare, beside, kinds: kindsHere() };
      const one = await measureOne(bench);
      if (postgres.skip) report.say(`Three nodes: ${postgres.skip}`);
      const three = postgres.skip ? [] : await measureThree(bench, postgres.server());
      tell(report, [...one, ...three], { bare, beside });
    } finally {
      load.stop();
      await postgres.stop();
    }
  },
};

type Sizes = {
  readonly rounds: number;
  /** No round begins later than this, apart from the first two: of one node, and of three. */
  readonly oneUntilMs: number;
  readonly threeUntilMs: number;
  /** Warm-up actions, which do not count: a node lives for days, and compiles what it does often. */
  readonly warmUps: number;
  /** Of files in the input tree, and how many actions of each are executed one by one and together. */
  readonly trees: readonly { readonly files: number; readonly alone: number; readonly together: number }[];
};

const full: Sizes = {
  rounds: 3,
  oneUntilMs: 55_000,
  threeUntilMs: 100_000,
  warmUps: 3_000,
  trees: [
    { files: 10, alone: 100, together: 600 },
    { files: 1_000, alone: 30, together: 60 },
    { files: 10_000, alone: 8, together: 16 },
  ],
};
const brief: Sizes = {
  rounds: 1,
  oneUntilMs: 0,
  threeUntilMs: 0,
  warmUps: 0,
  trees: [{ files: 10, alone: 5, together: 20 }],
};
const atOnce = 16;
/** The kinds of sandbox available here. */
const kindsHere = (): readonly SandboxKind[] => (bareBwrap(1, 1) === undefined ? ["plain"] : ["bubblewrap", "plain"]);

type Bench = {
  readonly report: Report;
  readonly kinds: readonly SandboxKind[];
  readonly load: ExecLoad;
  readonly sizes: Sizes;
  /** Rates of `bwrap true` by itself, one for each round. */
  readonly bare: number[];
  readonly beside: Beside;
};

/**
 * For a node without sandbox, while as many shells as there are cores start `bwrap true` beside it. Creating sandboxes
 * makes everything on a machine slower: that part is not the node's own cost.
 */
type Beside = { readonly rates: number[]; readonly ownMs: number[] };

/** Of one tree, in one kind of sandbox, on so many nodes. */
type Cell = {
  readonly nodes: number;
  readonly kind: SandboxKind;
  readonly files: number;
  readonly alone: Sample[];
  readonly aloneOwnMs: number[];
  readonly together: Sample[];
  readonly rates: number[];
  readonly ownMs: number[];
  readonly ranMs: number[];
  phases?: Phases | undefined;
};

const cellOf = (nodes: number, kind: SandboxKind, files: number): Cell => ({
  nodes,
  kind,
  files,
  alone: [],
  aloneOwnMs: [],
  together: [],
  rates: [],
  ownMs: [],
  ranMs: [],
});

async function measureOne(bench: Bench): Promise<readonly Cell[]> {
  const { sizes, bare } = bench;
  const contestants: { readonly nodes: ExecNodes; readonly cells: readonly Cell[] }[] = [];
  for (const kind of bench.kinds) {
    const nodes = await ExecNodes.one(kind);
    contestants.push({ nodes, cells: sizes.trees.map(({ files }) => cellOf(1, kind, files)) });
    await warmUp(bench, nodes, kind);
  }
  // The first round does not count: code is not compiled yet, and trees are not cached.
  for (let round = -1; isTime(bench, round, sizes.oneUntilMs); round += 1) {
    const rate = bareBwrap(Math.max(...sizes.trees.map(({ together }) => together)), atOnce);
    if (round >= 0 && rate !== undefined) bare.push(rate);
    for (const { nodes, cells } of contestants) await measureRound(bench, nodes, cells, round);
    const plain = contestants.at(-1)?.nodes;
    if (round >= 0 && rate !== undefined && plain) await measureBeside(bench, plain, round);
  }
  for (const { nodes, cells } of contestants) await finish(nodes, cells);
  return contestants.flatMap(({ cells }) => cells);
}

async function measureBeside(bench: Bench, nodes: ExecNodes, round: number): Promise<void> {
  const [{ files, together: count } = { files: 0, together: 0 }] = bench.sizes.trees;
  const batch = `beside ${round}`;
  await bench.load.ask({ kind: "prepare", ports: nodes.ports, files, count, batch });
  using _bwrap = besideBwrap(availableParallelism());
  const { rate, ownMs } = await execute(bench, nodes, batch, atOnce);
  bench.beside.ownMs.push(ownMs);
  bench.beside.rates.push(rate);
}

/** Executes the prepared actions with limited concurrency; the CPU is per action. */
async function execute({ load }: Bench, nodes: ExecNodes, batch: string, lanes: number) {
  const before = nodes.used;
  const { seconds, samples } = await load.ask({ kind: "execute", ports: nodes.ports, batch, atOnce: lanes });
  const after = nodes.used;
  const eachMs = (us: number): number => us / samples.length / 1_000;
  const [ownMs, ranMs] = [eachMs(after.ownUs - before.ownUs), eachMs(after.ranUs - before.ranUs)];
  return { samples, rate: samples.length / seconds, ownMs, ranMs };
}

async function warmUp({ load, sizes }: Bench, { ports }: ExecNodes, kind: SandboxKind): Promise<void> {
  const [{ files } = { files: 0 }] = sizes.trees;
  const batch = `${ports.length} ${kind} warm-up`;
  await load.ask({ kind: "prepare", ports, files, count: Math.ceil(sizes.warmUps / ports.length), batch });
  await load.ask({ kind: "execute", ports, batch, atOnce });
}

const isTime = ({ sizes, report }: Bench, round: number, untilMs: number): boolean =>
  round < Math.min(1, sizes.rounds) || (round < sizes.rounds && report.elapsedMs < untilMs);

/** Undefined if it does not work. */
async function measureThree(bench: Bench, server: PostgresServer): Promise<readonly Cell[]> {
  const all: Cell[] = [];
  for (const kind of bench.kinds) {
    const nodes = await ExecNodes.three(kind, server);
    const cells = bench.sizes.trees.map(({ files }) => cellOf(3, kind, files));
    try {
      await warmUp(bench, nodes, kind);
      for (let round = -1; isTime(bench, round, bench.sizes.threeUntilMs); round += 1)
        await measureRound(bench, nodes, cells, round);
      all.push(...cells);
    } catch (error) {
      bench.report.say(`Three nodes, ${kind}: ${String(error)}\n${nodes.complaints}`);
    } finally {
      await finish(nodes, cells);
    }
  }
  return all;
}

async function measureRound(bench: Bench, nodes: ExecNodes, cells: readonly Cell[], round: number): Promise<void> {
  for (const [index, cell] of cells.entries()) {
    const { files, alone = 0, together = 0 } = bench.sizes.trees[index] ?? { files: 0 };
    // Three nodes share the cores of one, and take as long for a third of the actions; a warm-up needs fewer, but every
    // node has to have seen the tree.
    const share = cell.nodes * (round < 0 ? 4 : 1);
    for (const [count, lanes] of [
      [Math.ceil(alone / share), 1],
      [Math.max(round < 0 ? Math.min(together, atOnce) : 0, Math.ceil(together / share)), atOnce],
    ] as const) {
      const batch = `${cell.nodes} ${cell.kind} ${files} ${lanes} ${round}`;
      await bench.load.ask({ kind: "prepare", ports: nodes.ports, files, count, batch });
      const { samples, rate, ownMs, ranMs } = await execute(bench, nodes, batch, lanes);
      if (round < 0) continue;
      if (lanes === 1) {
        cell.alone.push(...samples);
        cell.aloneOwnMs.push(ownMs);
      } else {
        cell.together.push(...samples);
        cell.rates.push(rate);
        cell.ownMs.push(ownMs);
        cell.ranMs.push(ranMs);
      }
    }
  }
}

const finish = (nodes: ExecNodes, cells: readonly Cell[]): Promise<void> =>
  nodes.stop(async (journal) => {
    for (const cell of cells) cell.phases = await phasesOf(cell.alone, journal);
  });

function tell(report: Report, cells: readonly Cell[], others: Pick<Bench, "bare" | "beside">): void {
  const { bare, beside } = others;
  const took = (samples: readonly Sample[]): readonly number[] => samples.map(({ tookMs }) => tookMs);
  const whose = ({ nodes, kind, files }: Cell): readonly Figure[] => [nodes === 1 ? "one" : "three", kind, files];
  report.table(
    "One action at a time",
    ["nodes", "sandbox", "files", "p50 ms", "p99 ms", "stage ms", "our CPU ms"],
    cells.map((cell) => {
      const { alone, aloneOwnMs } = cell;
      const stageMs = median(alone.map((sample) => sample.stageMs));
      return [...whose(cell), percentile(took(alone), 0.5), percentile(took(alone), 0.99), stageMs, median(aloneOwnMs)];
    }),
  );
  report.table(
    `${atOnce} actions at once`,
    ["nodes", "sandbox", "files", "actions/s", "p50 ms", "p99 ms", "our CPU ms", "CPU ms of sandbox and action"],
    cells.map((cell) => {
      const { rates, together, ownMs, ranMs } = cell;
      const [p50, p99] = [percentile(took(together), 0.5), percentile(took(together), 0.99)];
      return [...whose(cell), median(rates), p50, p99, median(ownMs), median(ranMs)];
    }),
  );
  report.say(`Bare bwrap from shells, ${atOnce} at once: ${Math.round(median(bare))} a second.`);
  const perSecond = `${Math.round(median(beside.rates))} actions a second at ${median(beside.ownMs).toFixed(1)} ms`;
  report.say(`One node without sandbox, 10 files, with bare bwrap beside it: ${perSecond} of our CPU.`);
  report.table(
    "Where the time goes",
    ["nodes", "sandbox", "files", ...phases],
    cells.flatMap((cell) => {
      const { phases: split } = cell;
      return split ? [[...whose(cell), ...phases.map((phase) => split[phase])]] : [];
    }),
  );
  for (const line of phasesExplained) report.say(line);
  judge(report, cells, others);
}

function judge(report: Report, cells: readonly Cell[], { bare, beside }: Pick<Bench, "bare" | "beside">): void {
  const at = (nodes: number, kind: SandboxKind, files: number): Cell =>
    cells.find((cell) => cell.nodes === nodes && cell.kind === kind && cell.files === files) ??
    cellOf(nodes, kind, files);
  const p50 = (cell: Cell): number => median(cell.alone.map(({ tookMs }) => tookMs));
  const [boxed, plain] = [at(1, "bubblewrap", 10), at(1, "plain", 10)];
  const [boxedMs, plainMs, besideMs] = [median(boxed.ownMs), median(plain.ownMs), median(beside.ownMs)];
  const ratio = median(boxed.rates) / median(bare);
  const stageMs = median(at(1, "bubblewrap", 10_000).alone.map((sample) => sample.stageMs));
  for (const [key, value] of Object.entries({
    boxed_p50_ms: p50(boxed),
    plain_p50_ms: p50(plain),
    plain_per_s: median(plain.rates),
    boxed_per_s: median(boxed.rates),
    bare_bwrap_per_s: median(bare),
    boxed_ratio: ratio,
    plain_own_cpu_ms: plainMs,
    boxed_own_cpu_ms: boxedMs,
    beside_own_cpu_ms: besideMs,
    stage_10000_ms: stageMs,
    three_boxed_per_s: median(at(3, "bubblewrap", 10).rates),
    three_boxed_p50_ms: p50(at(3, "bubblewrap", 10)),
  }))
    report.figure(key, value);
  report.target({ what: "round trip in the sandbox, one at a time, p50 ms", atMost: 10, got: p50(boxed) });
  report.target({ what: "actions a second without sandbox", atLeast: 300, got: median(plain.rates) });
  report.target({ what: "in the sandbox, of the rate of bare bwrap", atLeast: 0.6, got: ratio });
  report.target({ what: "our own CPU for an action, without sandbox, ms", atMost: 2, got: plainMs });
  report.target({ what: "our own CPU for an action in the sandbox, ms", atMost: 2, got: boxedMs });
  const three = p50(at(3, "bubblewrap", 10));
  report.target({ what: "three nodes answer at all, p50 ms", atMost: 1_000, got: three, missing: "see above" });
  report.target({ what: "10,000 cached files laid out, ms", atMost: 150, got: stageMs });
}
