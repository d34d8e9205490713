import { readOr, type Groups } from "./group.ts";
import { openGroupsV1 } from "./groups-v1.ts";
import { openGroupsV2 } from "./groups-v2.ts";

/** Undefined if there are none that we may write. */
export function openGroups(name: string, ours?: () => ReadonlySet<number>): Groups | undefined {
  if (process.platform !== "linux") return undefined;
  const where = { mounts: readOr("/proc/self/mountinfo"), own: readOr("/proc/self/cgroup") };
  return openGroupsV1(name, where) ?? openGroupsV2(name, where, ours && { ours });
}
