/**
 * Prepares version 2 for our groups. A group that delegates controllers may have no processes of its own: the kernel
 * refuses to delegate memory and similar controllers, and makes subgroups of the others unusable. Only the machine's
 * root group is exempt. So our own processes move into a leaf of our group, and lanes get their groups beside it.
 */
import { mkdirSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { numbersIn, readOr, rest, writeQuietly } from "./group.ts";
import { statOf } from "#worker/process/launcher/proc.ts";

/** One name for all nodes: a process that starts in it knows that its parent group is prepared. */
export const leafName = "millrace-own";

/**
 * The group in which to create ours: our parent group if that was prepared before, for example by whatever started the
 * node.
 */
export const groupAround = (own: string): string => (basename(own) === leafName ? dirname(own) : own);

/** Others may come and go: a container's health check is in its group for a moment. */
const looksMax = 10;

/** Moves our own processes into the leaf; returns the processes that are left. Moves nothing while others are there. */
export function moveIntoLeaf(own: string, ours: () => ReadonlySet<number>): readonly number[] {
  const members = (): readonly number[] => numbersIn(readOr(join(own, "cgroup.procs")));
  // The kernel shows no type for the machine's root group.
  if (readOr(join(own, "cgroup.type")) === "" || members().length === 0) return [];
  const leaf = join(own, leafName);
  const tops = ours();
  let left: readonly number[] = [];
  // Repeated, because a process that is being moved may just have forked.
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

/** A process outside our pid namespace shows as pid 0, and writing 0 would move ourselves. */
function isBelow(pid: number, tops: ReadonlySet<number>): boolean {
  for (let at = pid; at > 0; at = statOf(at)?.parent ?? 0) if (tops.has(at)) return true;
  return false;
}

/**
 * Our own processes and all they started: this launcher, the node that started it, and the `millrace` command that
 * started the node.
 */
export function oursOf(node: number): ReadonlySet<number> {
  // If the node is gone, its pid may belong to another process.
  if (process.ppid !== node) return new Set([process.pid]);
  const above = statOf(node)?.parent ?? 0;
  return new Set([process.pid, node, ...(isCommand(above) ? [above] : [])]);
}

const bin = fileURLToPath(new URL("../../../../bin", import.meta.url));

/** Whether it is the `millrace` command, which stays as the parent of the Node that it found. */
export function isCommand(pid: number): boolean {
  try {
    const cwd = readlinkSync(`/proc/${pid}/cwd`);
    const [, script = ""] = readOr(`/proc/${pid}/cmdline`).split("\0");
    return script !== "" && dirname(realpathSync(resolve(cwd, script))) === realpathSync(bin);
  } catch {
    return false; // gone, or not readable
  }
}
