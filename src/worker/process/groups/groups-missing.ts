import type { Groups } from "./group.ts";

/** What commands lack without a controller. The number of processes is limited in any case. */
const without: readonly (readonly [controller: string, what: string])[] = [
  ["memory", "a limit and a measure of their total memory (each process has the limit for itself)"],
  ["cpu", "a limit of CPU"],
];

const remedy =
  "a node needs a control group of its own that it may write: Delegate=yes with systemd, a writable /sys/fs/cgroup in" +
  " a container (docs/how-to/operate.md)";

/** For the operator of the node. */
export function missingOf(groups: Pick<Groups, "controllers" | "why"> | undefined): readonly string[] {
  const whats = without.filter(([controller]) => !groups?.controllers.includes(controller)).map(([, what]) => what);
  if (whats.length === 0) return [];
  const why = groups ? (groups.why ?? "this machine's control groups do not have it") : "no control group can be made";
  return [`${whats.join(" and ")}: ${why}; ${remedy}`];
}
