/**
 * Room for groups of version 2. A group that hands controllers down may have no processes of its own: the kernel
 * refuses memory and its like as busy, and takes the groups below one that hands down the others out of use. Only the
 * machine's root is exempt. So what is ours moves into a leaf of our group, and lanes have their groups beside it.
 */
import { mkdirSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { numbersIn, readOr, rest, writeQuietly } from "./group.ts";
import { statOf } from "#worker/process/launcher/proc.ts";

/** One name for all nodes: whoever is started in it knows that there is room beside it. */
export const leafName = "millrace-own";

/** The group to make ours in. Where room was made before, be it by whoever started the node, that is around us. */
export const groupAround = (own: string): string => (basename(own) === leafName ? dirname(own) : own);

/** Others may come and go: a probe of a container's health is in its group for a moment. */
const looksMax = 10;

/** Moves what is ours out of the way; the processes that are left there. Nothing is moved while others are there. */
export function makeRoom(own: string, ours: () => ReadonlySet<number>): readonly number[] {
  const members = (): readonly number[] => numbersIn(readOr(join(own, "cgroup.procs")));
  // Of the machine's root the kernel tells no type.
  if (readOr(join(own, "cgroup.type")) === "" || members().length === 0) return [];
  const leaf = join(own, leafName);
  const tops = ours();
  let left: readonly number[] = [];
  // More than once: one that is being moved may just have forked.
  for (let look = 0; look < looksMax; look += 1) {
    if (look > 0) rest();
    left = members();
    if (left.length === 0) return [];
    const others = left.filter((pid) => !isBelow(pid, tops));
    if (others.length > 0) {
      left = others;
      continue;
    }
    mkdirSync(leaf, { recursive: true });
    for (const pid of left) writeQuietly(join(leaf, "cgroup.procs"), String(pid));
  }
  return members().length === 0 ? [] : left;
}

/** One that is in no namespace of ours has the number 0 here, and to move that would be to move ourselves. */
function isBelow(pid: number, tops: ReadonlySet<number>): boolean {
  for (let at = pid; at > 0; at = statOf(at)?.parent ?? 0) if (tops.has(at)) return true;
  return false;
}

/** Ours, with all that they started: this launcher, the node that started it, and the command in front of that. */
export function oursOf(node: number): ReadonlySet<number> {
  // If it is gone already, whoever has its number is somebody else.
  if (process.ppid !== node) return new Set([process.pid]);
  const above = statOf(node)?.parent ?? 0;
  return new Set([process.pid, node, ...(isCommand(above) ? [above] : [])]);
}

const bin = fileURLToPath(new URL("../../../../bin", import.meta.url));

/** Whether it is `millrace` itself, which stays in front of the Node that it found. */
export function isCommand(pid: number): boolean {
  try {
    const cwd = readlinkSync(`/proc/${pid}/cwd`);
    const [, script = ""] = readOr(`/proc/${pid}/cmdline`).split("\0");
    return script !== "" && dirname(realpathSync(resolve(cwd, script))) === realpathSync(bin);
  } catch {
    return false; // gone, or not ours to look at
  }
}
