import { totalmem } from "node:os";
import { dirname, join } from "node:path";
import { readOr } from "#worker/process/groups/group.ts";
import { ownGroupV2, type Where } from "#worker/process/groups/groups-where.ts";

/** A container may have less than the machine. */
export const machineBytes = (): number =>
  Math.min(totalmem(), process.constrainedMemory() || Infinity, groupBytes(ownWhere()));

const ownWhere = (): Where => ({ mounts: readOr("/proc/self/mountinfo"), own: readOr("/proc/self/cgroup") });

/** The smallest limit of our group and its parents. Node looks only at our own, which may be a leaf without a limit. */
export function groupBytes(where: Where): number {
  let least = Infinity;
  for (let at = ownGroupV2(where); at !== undefined && isGroup(at); at = dirname(at))
    least = Math.min(least, Number.parseInt(readOr(join(at, "memory.max")), 10) || Infinity);
  return least;
}

const isGroup = (path: string): boolean => readOr(join(path, "cgroup.controllers"), "none") !== "none";
