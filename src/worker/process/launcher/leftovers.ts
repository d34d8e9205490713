/** Finds what a killed launcher left behind, and ends it before anything new starts. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { killQuietly, numbersIn, readOr, removeQuietly, rest, writeQuietly } from "#worker/process/groups/group.ts";
import type { MarkRange } from "./marks.ts";
import { isAlive, statOf, strays } from "./proc.ts";

type Memory = {
  readonly pid: number;
  readonly startedTicks: string;
  readonly roots: readonly string[];
  readonly marks?: MarkRange;
};

/** A name for each home folder, so that several nodes on one machine do not interfere. */
export const groupsName = (home: string): string =>
  `millrace-${createHash("sha256").update(home).digest("hex").slice(0, 12)}`;

export function remember(home: string, { roots, marks }: { roots: readonly string[]; marks?: MarkRange }): void {
  const startedTicks = statOf(process.pid)?.startedTicks ?? "";
  const memory: Memory = { pid: process.pid, startedTicks, roots, ...(marks && { marks }) };
  writeFileSync(memoryPath(home), JSON.stringify(memory), { mode: 0o600 });
}

/** Ends the previous launcher, if it is alive, and everything that it had started. */
export function clearUp(home: string): void {
  const memory = recalled(home);
  if (memory && memory.pid !== process.pid && statOf(memory.pid)?.startedTicks === memory.startedTicks)
    killQuietly(memory.pid);
  clearRoots(memory?.roots ?? []);
  endStrays(home, memory?.marks);
}

/** Ends live runs of the home folder, and processes with one of the marks. */
export function endStrays(home: string, marks: MarkRange | undefined): void {
  const folders = [join(home, "lanes"), join(home, "attempts")];
  for (let round = 0; round < roundsMax; round += 1) {
    const left = strays({ marks, folders }).filter((pid) => isAlive(pid));
    if (left.length === 0) return;
    for (const pid of left) killQuietly(pid);
    rest();
  }
}

const roundsMax = 200;

/** Kills all processes in the groups below, and removes the groups. */
export function clearRoots(roots: readonly string[]): void {
  for (const root of roots) {
    clearRoot(root);
    removeQuietly(root);
  }
}

function clearRoot(root: string): void {
  for (const lane of lanesBelow(root)) {
    for (let round = 0; round < roundsMax && numbersIn(readOr(join(lane, "cgroup.procs"))).length > 0; round += 1) {
      freeze(lane, true);
      for (const pid of numbersIn(readOr(join(lane, "cgroup.procs")))) killQuietly(pid);
      // A frozen process would never notice that it was killed.
      freeze(lane, false);
      rest();
    }
    removeQuietly(lane);
  }
}

function freeze(lane: string, isFrozen: boolean): void {
  writeQuietly(join(lane, "cgroup.freeze"), isFrozen ? "1" : "0");
  writeQuietly(join(lane, "freezer.state"), isFrozen ? "FROZEN" : "THAWED");
}

function lanesBelow(root: string): readonly string[] {
  try {
    return readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(root, name));
  } catch {
    return [];
  }
}

function recalled(home: string): Memory | undefined {
  try {
    return JSON.parse(readFileSync(memoryPath(home), "utf8")) as Memory;
  } catch {
    return undefined;
  }
}

const memoryPath = (home: string): string => join(home, "launcher.json");
