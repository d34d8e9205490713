/** What may happen to a fleet while releases run, each with real processes; `e2e/deploy/chaos/main.ts` runs them. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "#base/random.ts";
import { startPostgres } from "#testing/postgres.ts";
import { until } from "#testing/until.ts";
import { killAt, killSteps, type KillStep } from "./agent-kills.ts";
import { GoalWatch } from "./goal-watch.ts";
import { ChaosLab } from "./lab.ts";

export type Round = { readonly random: Random; readonly rounds: number; readonly say: (line: string) => void };
export type Scenario = {
  readonly name: string;
  readonly about: string;
  /** Answers with what was violated, or with a sentence why it cannot run here. */
  readonly run: (round: Round) => Promise<readonly string[] | string>;
};

const three = ["m1", "m2", "m3"];
const twoWaves = '[{ share: "40%", bake: 1s }, { share: "100%" }]';
const MiB = 1024 * 1024;

export async function killAgents(steps: readonly KillStep[], { say }: Round): Promise<readonly string[]> {
  await using lab = await ChaosLab.open(["m1", "m2"]);
  await lab.ended(await lab.release());
  const missed: string[] = [];
  for (const step of steps) {
    const startedMs = performance.now();
    let isSeen = false;
    for (let tries = 0; tries < 3 && !isSeen; tries += 1) isSeen = await killAt(lab, "m1", step);
    if (!isSeen) missed.push(step.name);
    say(`  killed when ${step.name}: ${isSeen ? "seen" : "NOT SEEN"}, ${Math.round(performance.now() - startedMs)} ms`);
  }
  // On a busy machine a short step may be over before it is seen; without most of them this would show nothing.
  const isBlind = missed.length > steps.length / 2;
  return [...lab.violations, ...(isBlind ? missed.map((name) => `the step was never seen: ${name}`) : [])];
}

const killNode: Scenario = {
  name: "node",
  about: "the node is killed while waves run",
  async run({ random, rounds, say }) {
    await using lab = await ChaosLab.open(three);
    await lab.ended(await lab.release());
    using watch = new GoalWatch(lab);
    for (let round = 1; round <= rounds; round += 1) {
      const job = await lab.release(twoWaves);
      const afterMs = random.below(3_000);
      await pause(afterMs);
      await lab.fleet.node.kill();
      await lab.fleet.node.start();
      const phase = await lab.ended(job);
      await lab.converged();
      await lab.check(`node killed after ${afterMs} ms`);
      await watch.check(`node killed after ${afterMs} ms`);
      say(`  node killed after ${afterMs} ms: the release ${phase}, the fleet runs the newest goal`);
    }
    say(`  ${watch.seen} goals were followed`);
    return lab.violations;
  },
};

const killDatabase: Scenario = {
  name: "database",
  about: "PostgreSQL is killed while waves run",
  async run({ random, rounds, say }) {
    const postgres = await startPostgres();
    if (postgres.skip !== false) return postgres.skip;
    const folder = mkdtempSync(join(tmpdir(), "millrace-key-"));
    try {
      const keyFile = join(folder, "vault.key");
      writeFileSync(keyFile, `k1 ${Buffer.alloc(32, 7).toString("base64")}\n`, { mode: 0o600 });
      const url = await postgres.server().freshDatabase();
      await using lab = await ChaosLab.open(three, { journal: { kind: "postgres", url }, vault: { keyFile } });
      await lab.ended(await lab.release());
      using watch = new GoalWatch(lab);
      for (let round = 1; round <= rounds; round += 1) {
        const job = await lab.release(twoWaves);
        const [afterMs, forMs] = [random.below(3_000), 200 + random.below(3_000)];
        await pause(afterMs);
        await postgres.server().stop("kill");
        await pause(forMs);
        await postgres.server().start();
        const phase = await lab.ended(job);
        await lab.converged();
        await lab.check(`database killed after ${afterMs} ms`);
        await watch.check(`database killed after ${afterMs} ms`);
        say(`  database killed after ${afterMs} ms for ${forMs} ms: the release ${phase}`);
      }
      return lab.violations;
    } finally {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

const fullDisk: Scenario = {
  name: "disk",
  about: "a machine's disk is full before a release, and becomes full in the middle of one",
  async run({ rounds, say }) {
    await using lab = await ChaosLab.open(["m2"]);
    const { folder } = lab.fleet;
    const disk = join(folder, "m1");
    mkdirSync(disk);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${140 * MiB}`, "tmpfs", disk], { stdio: "pipe" });
    } catch (error) {
      return `needs a-small-mount: ${String(error).split("\n")[0]}`;
    }
    try {
      return await fillDisk(lab, disk, rounds, say);
    } finally {
      await lab.fleet.killAgent("m1");
      execFileSync("umount", ["-l", disk]);
    }
  },
};

async function fillDisk(lab: ChaosLab, disk: string, rounds: number, say: Round["say"]): Promise<readonly string[]> {
  const filler = join(disk, "filler");
  const fill = (leave: number): void => {
    const { bavail, bsize } = statfsSync(disk);
    try {
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - leave)));
    } catch (error) {
      // The agent was faster: what there was is full now.
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  };
  lab.machines.push("m1");
  lab.fleet.startAgent("m1");
  await lab.ended(await lab.release());
  for (let round = 1; round <= rounds; round += 1) {
    await lab.converged();
    fill(8 * MiB);
    const refused = await lab.ended(await lab.release());
    if (refused !== "FAILED") lab.violations.push(`a release to a full disk ended ${refused}`);
    await lab.converged();
    await lab.check("full before a release");
    lab.checkProcesses("full before a release");
    rmSync(filler);
    const job = await lab.release();
    const staging = (): boolean => lab.isStaging("m1");
    const isOver = async (): Promise<boolean> => /SUCC|FAIL|CANC/.test(await lab.fleet.phase(job));
    await until("it stages", async () => staging() || (await isOver()), { limitMs: 120_000, everyMs: 1 });
    fill(0);
    await pause(1_500);
    rmSync(filler);
    say(`  full in the middle: the release ${await lab.ended(job)}`);
    await lab.converged();
    await lab.check("full in the middle");
    lab.checkProcesses("full in the middle");
  }
  return lab.violations;
}

const wrongClocks: Scenario = {
  name: "clock",
  about: "two machines' clocks are a day off, each to its side, and then the node's",
  async run({ say }) {
    const folder = mkdtempSync(join(tmpdir(), "millrace-clock-"));
    const library = join(folder, "wrong-clock.so");
    try {
      execFileSync("cc", ["-shared", "-fPIC", "-o", library, join(import.meta.dirname, "wrong-clock.c"), "-ldl"]);
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      return `needs cc: ${String(error).split("\n")[0]}`;
    }
    const by = (seconds: number) => ({ LD_PRELOAD: library, WRONG_CLOCK: String(seconds) });
    try {
      await using lab = await ChaosLab.open(["m3"]);
      lab.machines.push("m1", "m2");
      lab.fleet.startAgent("m1", 0, "eu", by(86_400));
      lab.fleet.startAgent("m2", 0, "eu", by(-86_400));
      using watch = new GoalWatch(lab);
      for (const ofNode of [0, 86_400, 0]) {
        if (ofNode !== 0 || watch.seen > 0) {
          await lab.fleet.node.kill();
          await withEnvironment(ofNode === 0 ? {} : by(ofNode), () => lab.fleet.node.start());
        }
        const phase = await lab.ended(await lab.release(twoWaves));
        if (phase !== "SUCCEEDED") lab.violations.push(`with the node's clock off by ${ofNode} s: ${phase}`);
        await lab.converged();
        await lab.check(`the node's clock off by ${ofNode} s`);
        say(`  the node's clock off by ${ofNode} s: ${phase}`);
      }
      await watch.check("wrong clocks");
      return lab.violations;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function withEnvironment(more: Readonly<Record<string, string>>, run: () => Promise<void>): Promise<void> {
  Object.assign(process.env, more);
  try {
    await run();
  } finally {
    for (const name of Object.keys(more)) delete process.env[name];
  }
}

export async function race({ random, rounds, say }: Round): Promise<readonly string[]> {
  await using lab = await ChaosLab.open(three);
  await lab.ended(await lab.release());
  await lab.ended(await lab.release());
  using watch = new GoalWatch(lab);
  for (let round = 1; round <= rounds; round += 1) {
    const jobs: string[] = [];
    for (const begin of [() => lab.release(twoWaves), () => lab.release(twoWaves), () => lab.rollback()]) {
      jobs.push(await begin());
      await pause(random.below(2_500));
    }
    const phases: string[] = [];
    for (const job of jobs) phases.push(await lab.ended(job));
    await lab.converged();
    await lab.check("a race");
    lab.checkProcesses("a race");
    await watch.check("a race");
    say(`  two releases and a rollback: ${phases.join(", ")}; goal ${(await lab.goal())?.version}`);
  }
  return lab.violations;
}

export const scenarios: readonly Scenario[] = [
  {
    name: "agent",
    about: "an agent is killed in each step of staging and switching",
    run: (round) => killAgents(killSteps, round),
  },
  killNode,
  killDatabase,
  fullDisk,
  wrongClocks,
  { name: "race", about: "two releases and a rollback at once", run: race },
];
