/** The cost of starting a process, of putting it into a sandbox, and of staging its input tree. */
import { spawn as spawnChild } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { systemClock } from "#door/system-clock.ts";
import type { Command } from "#worker/sandbox/command.ts";
import { Sandbox } from "#worker/sandbox/sandbox.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import { putTree } from "#worker/stage/testing/rig.ts";
import { stage } from "#worker/stage/stage.ts";
import { Trees } from "#worker/stage/tree.ts";
import { bareBwrap } from "./bare-bwrap.ts";
import { median, processCpuUs } from "#bench/measure.ts";
import type { Figure, Report } from "#bench/report.ts";
import type { BenchOptions, Suite } from "#bench/suite.ts";

export const spawn: Suite = {
  name: "spawn",
  about: "starting processes: from a large node, through the launcher, in the sandbox; input trees",
  notMeasured: [
    "what is around an attempt: claims, commits, uploads, the client",
    "control groups of version 2, where this machine has none",
    "input files that have to be fetched first",
  ],
  async run(report: Report, options: BenchOptions) {
    const home = mkdtempSync(join(tmpdir(), "millrace-bench-"));
    chmodSync(home, 0o711);
    try {
      await compareStarts(report, options, home);
      await measureTrees(report, options, home);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  },
};

const lanes = 4;
const words = ["/bin/true"];

type Contestant = {
  readonly name: string;
  /** Calls back when the process was requested: how long this event loop was blocked. */
  readonly start: (asked: () => void) => Promise<void>;
  /** CPU so far of the process that starts it, besides this one. */
  readonly helperCpuUs?: () => number;
};

type Row = {
  readonly name: string;
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  readonly heldMs: number;
  /** Of this process and the launcher, for one start. */
  readonly cpuMs: number;
};

async function compareStarts(report: Report, { smoke }: BenchOptions, home: string): Promise<void> {
  const count = smoke ? 8 : 200;
  const rows: Row[] = [];
  // Touched pages: a fork has to look at them.
  for (const ballastMb of smoke ? [0] : [0, 512]) {
    const ballast = Buffer.alloc(ballastMb * 1024 * 1024, 1);
    rows.push(await measure(childProcess(`child_process, ${ballastMb} MB`), ballastMb > 0 ? count / 4 : count));
    for (const want of ["plain", "bubblewrap"] as const) {
      const found = await launcher(join(home, `${want}-${ballastMb}`), want, ballastMb);
      if (!found) continue;
      rows.push(await measure(found.contestant, count));
      await found.sandbox.close({ quit: true });
    }
    if (ballast.length === 1) report.say(""); // keeps it alive until here
  }
  const bare = bareBwrap(count, lanes);
  if (bare !== undefined)
    rows.push({
      name: "bare bwrap, from a shell",
      rate: bare,
      p50: Number.NaN,
      p99: Number.NaN,
      heldMs: Number.NaN,
      cpuMs: Number.NaN,
    });
  const cell = (value: number): Figure => (Number.isNaN(value) ? "" : value);
  report.table(
    `Starting /bin/true, ${lanes} at once`,
    ["", "a second", "p50 ms", "p99 ms", "loop held ms", "our CPU ms"],
    rows.map((row) => [row.name, cell(row.rate), cell(row.p50), cell(row.p99), cell(row.heldMs), cell(row.cpuMs)]),
  );
  tellTargets(report, rows, bare);
}

function tellTargets(report: Report, rows: readonly Row[], bare: number | undefined): void {
  const of = (part: string): Row | undefined => rows.findLast(({ name }) => name.startsWith(part));
  const [child, plain, boxed] = [of("child_process"), of("launcher, plain"), of("launcher, bubblewrap")];
  report.figure("plain_rate", plain?.rate ?? 0);
  report.figure("boxed_rate", boxed?.rate ?? 0);
  const missing = "no bubblewrap here";
  const boxedRatio = boxed && bare !== undefined ? boxed.rate / bare : undefined;
  report.target({ what: "in the sandbox, of the rate of bare bwrap", atLeast: 0.6, got: boxedRatio, missing });
  report.target({ what: "the loop is held by a start, ms", atMost: 1, got: plain?.heldMs });
  report.target({
    what: "rate, times child_process of a large process",
    atLeast: 1.5,
    got: plain && child && plain.rate / child.rate,
  });
}

async function measure({ name, start, helperCpuUs = () => 0 }: Contestant, count: number): Promise<Row> {
  await start(() => {});
  const [cpuBefore, helperBefore] = [process.cpuUsage(), helperCpuUs()];
  const tookMs: number[] = [];
  const heldMs: number[] = [];
  let left = count;
  const beganMono = performance.now();
  const runner = async (): Promise<void> => {
    while (left-- > 0) {
      const askedMono = performance.now();
      await start(() => heldMs.push(performance.now() - askedMono));
      tookMs.push(performance.now() - askedMono);
    }
  };
  await Promise.all(Array.from({ length: lanes }, runner));
  const seconds = (performance.now() - beganMono) / 1_000;
  tookMs.sort((a, b) => a - b);
  const at = (share: number): number => tookMs[Math.min(tookMs.length - 1, Math.floor(tookMs.length * share))] ?? 0;
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpuMs = (user + system + helperCpuUs() - helperBefore) / 1_000 / tookMs.length;
  return { name, rate: tookMs.length / seconds, p50: at(0.5), p99: at(0.99), heldMs: median(heldMs), cpuMs };
}

const childProcess = (name: string): Contestant => ({
  name,
  async start(asked) {
    const out = openSync("/dev/null", "w");
    const child = spawnChild(words[0] ?? "", [], { stdio: ["ignore", out, out], detached: true, env: {} });
    closeSync(out);
    asked();
    await new Promise((resolve) => child.once("exit", resolve));
  },
});

async function launcher(home: string, want: "plain" | "bubblewrap", ballastMb: number) {
  mkdirSync(home, { mode: 0o711 });
  const options = { home, socket: join(home, "l"), lanes, clock: systemClock, log: () => {}, isolation: { want } };
  const sandbox = await Sandbox.open(options).catch(() => undefined);
  if (!sandbox) return undefined;
  const command: Command = {
    tag: "bench",
    argv: words,
    env: {},
    workingDirectory: "",
    network: false,
    limits: { memoryBytes: 1e9, pids: 100 },
    timeoutMs: 60_000,
    leaseMs: 60_000,
    outputBytesMax: 1_000_000,
  };
  const contestant: Contestant = {
    name: `launcher, ${want}, ${ballastMb} MB`,
    helperCpuUs: () => processCpuUs(sandbox.launcherPid),
    async start(asked) {
      await using attempt = await sandbox.attempt();
      const running = attempt.start(command);
      asked();
      const { exitCode } = await sandbox.ended(running, attempt.folder);
      running.forget();
      if (exitCode !== 0) throw new Error(`exit code ${exitCode}`);
    },
  };
  return { sandbox, contestant };
}

async function measureTrees(report: Report, { smoke }: BenchOptions, home: string): Promise<void> {
  const rows: Figure[][] = [];
  let largestMs = 0;
  for (const files of smoke ? [10] : [10, 1_000, 10_000]) {
    const blobs = createMemoryBlobs({ clock: systemClock, sizeBytesMax: 1e9 });
    const tree = Object.fromEntries(Array.from({ length: files }, (_, i) => [`d${i % 100}/f${i}`, `file ${i}`]));
    const inputRoot = await putTree(blobs, tree);
    const links = await LinkCache.open({ folder: join(home, `links-${files}`), bytesMax: 1e9 });
    const ports = { trees: new Trees(), links, blobs };
    const request = { inputRoot, digestFunction: "sha256", workingDirectory: "", outputs: [] } as const;
    const tookMs: number[] = [];
    const cpuMs: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const root = join(home, `root-${files}-${round}`);
      mkdirSync(root);
      const beganMono = performance.now();
      const cpuBefore = process.cpuUsage();
      await stage(
        { ...request, symlinks: { absoluteLinks: "allowed" } },
        { root, uid: undefined, files: "link" },
        ports,
      );
      tookMs.push(performance.now() - beganMono);
      const { user, system } = process.cpuUsage(cpuBefore);
      cpuMs.push((user + system) / 1_000);
      rmSync(root, { recursive: true });
    }
    const [cold = 0, ...warm] = tookMs;
    largestMs = median(warm);
    rows.push([files, cold, largestMs, median(cpuMs.slice(1))]);
  }
  report.table("An input tree in a hundred folders", ["files", "first ms", "then ms", "then CPU ms"], rows);
  report.figure("tree_ms", largestMs);
  if (!smoke) report.target({ what: "10,000 files that are cached, ms", atMost: 150, got: largestMs });
}
