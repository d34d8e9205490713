/** Kills an agent with kill -9 at the moment in which a step of staging or switching is seen on its disk. */
import { existsSync, mkdirSync, readdirSync, statSync, watch, type FSWatcher } from "node:fs";
import { join } from "node:path";
import { until } from "#testing/until.ts";
import type { ChaosLab } from "./lab.ts";

/** `name` is a path below the service's folder, as it appeared or changed; `times` counts how often that happened. */
type Seen = { readonly name: string; readonly times: number };

export type KillStep = { readonly name: string; readonly isSeen: (seen: Seen) => boolean };

const first =
  (pattern: RegExp) =>
  ({ name, times }: Seen) =>
    times === 1 && pattern.test(name);
const nth =
  (pattern: RegExp, n: number) =>
  ({ name, times }: Seen) =>
    times >= n && pattern.test(name);

export const killSteps: readonly KillStep[] = [
  { name: "the goal is written aside", isSeen: first(/^goal\.json\.new$/) },
  { name: "the goal has its name", isSeen: first(/^goal\.json$/) },
  { name: "the manifest is written aside", isSeen: first(/^versions\/sha256-\w+\.json\.new$/) },
  { name: "the manifest has its name", isSeen: first(/^versions\/sha256-\w+\.json$/) },
  { name: "the staging folder is there", isSeen: first(/\.staging$/) },
  { name: "the first file is there", isSeen: first(/\.staging\/data\.bin$/) },
  { name: "some of it is written", isSeen: nth(/\.staging\/data\.bin$/, 3) },
  { name: "more of it is written", isSeen: nth(/\.staging\/data\.bin$/, 8) },
  { name: "the second file is there", isSeen: first(/\.staging\/run\.sh$/) },
  { name: "the version is complete", isSeen: first(/^versions\/sha256-[0-9a-f]+$/) },
  { name: "the old process is gone, the link is made aside", isSeen: first(/^current\.new$/) },
  { name: "the link is switched", isSeen: first(/^current$/) },
  { name: "the start is written aside", isSeen: first(/^process\.json\.new$/) },
  { name: "the start is recorded", isSeen: first(/^process\.json$/) },
  { name: "the process is written aside", isSeen: nth(/^process\.json\.new$/, 3) },
  { name: "the process is recorded", isSeen: nth(/^process\.json$/, 2) },
  { name: "the good version is written aside", isSeen: first(/^memory\.json\.new$/) },
  { name: "the good version is recorded", isSeen: first(/^memory\.json$/) },
];

const limits = { limitMs: 180_000, everyMs: 20 };

/** Releases a version, kills the agent in the step, and has it go on. Answers whether the step was seen. */
export async function killAt(lab: ChaosLab, machine: string, step: KillStep): Promise<boolean> {
  const folder = join(lab.fleet.folder, machine, "services", "web");
  mkdirSync(join(folder, "versions"), { recursive: true });
  const pid = lab.fleet.agentPid(machine);
  let isKilled = false;
  const job = await watching(folder, step, {
    kill() {
      if (isKilled || pid === undefined) return;
      isKilled = true;
      process.kill(pid, "SIGKILL");
    },
    during: async () => {
      const begun = await lab.release();
      const isOver = async (): Promise<boolean> => isKilled || /SUCC|FAIL|CANC/.test(await lab.fleet.phase(begun));
      await until(`${step.name}, or the release has ended`, isOver, limits);
      return begun;
    },
  });
  await lab.fleet.killAgent(machine);
  await lab.check(`killed when ${step.name}`);
  lab.fleet.startAgent(machine);
  const phase = await lab.ended(job);
  if (phase !== "SUCCEEDED") lab.violations.push(`killed when ${step.name}: the release ended ${phase}`);
  await lab.converged();
  await lab.check(`back after ${step.name}`);
  lab.checkProcesses(`back after ${step.name}`);
  return isKilled;
}

async function watching<T>(
  folder: string,
  step: KillStep,
  { kill, during }: { readonly kill: () => void; readonly during: () => Promise<T> },
): Promise<T> {
  const watchers: FSWatcher[] = [];
  const times = new Map<string, number>();
  const seen = (name: string): void => {
    const count = (times.get(name) ?? 0) + 1;
    times.set(name, count);
    if (step.isSeen({ name, times: count })) kill();
    // Folders that appear are looked into from then on.
    if (count === 1 && name.endsWith(".staging") && isFolder(join(folder, name))) look(name);
  };
  const look = (below: string): void => {
    try {
      const watcher = watch(join(folder, below), (_, name) => {
        if (name !== null) seen(below === "" ? name : `${below}/${name}`);
      });
      watcher.on("error", () => undefined); // the folder is gone
      watchers.push(watcher);
      // What was there before it was watched.
      if (below !== "" && below !== "versions")
        for (const name of readdirSync(join(folder, below))) seen(`${below}/${name}`);
    } catch (error) {
      // It has its final name already.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  };
  look("");
  look("versions");
  try {
    return await during();
  } finally {
    for (const watcher of watchers) watcher.close();
  }
}

const isFolder = (path: string): boolean => existsSync(path) && statSync(path).isDirectory();
