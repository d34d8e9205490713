import { formatSize } from "#base/units.ts";
import { command, serverFlags } from "#door/command.ts";

export const shards = command({
  name: "shards",
  about: "List the shards: who owns each, and how much the asked node holds in its own.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace shards"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { showCluster, showNode } = await import("#api/cluster.ts");
    const { tableLines } = await import("#door/table.ts");
    const api = apiOf(values, world.env, "list shards");
    const cluster = await api(showCluster, {});
    const here = await api(showNode, {});
    const all = cluster.shards.map((shard) => ({
      ...shard,
      here: here.shards.find((one) => one.shard === shard.shard),
    }));
    if (values.json) {
      for (const { leaseMs, ...shard } of all) world.out(JSON.stringify({ ...shard, remainingMs: leaseMs }));
      return 0;
    }
    const rows = all.map(({ shard, owner, epoch, isolatedOn, isolatedFor, here: held }) => [
      shard,
      `${owner ?? "no owner"}${keptFor(isolatedOn, isolatedFor)}`,
      epoch,
      held?.phase ?? "",
      held?.jobs ?? "",
      held?.claims ?? "",
      held?.load ? `${Math.round(held.load.loopShare * 100)} %` : "",
      [...(held?.ready ?? []).map(waiting), held?.trouble ?? ""].filter((text) => text !== "").join(", "),
    ]);
    for (const line of tableLines(["SHARD", "OWNER", "EPOCH", "HERE", "JOBS", "CLAIMS", "TIME", "WAITING"], rows))
      world.out(line);
    const { workBytes = 0, workBytesMax = 0 } = here.memory ?? {};
    if (workBytesMax > 0)
      world.out(
        `work of ${here.node} takes ${formatSize(workBytes)} of memory, and may take ${formatSize(workBytesMax)}`,
      );
    return 0;
  },
});

/** Tasks that wait, and what an executor must offer to run them. */
const waiting = ({ requires, tasks }: { readonly requires: readonly string[]; readonly tasks: number }): string =>
  `${tasks} for ${requires.join(" ") || "any executor"}`;

function keptFor(node: string | undefined, tenant: string | undefined): string {
  if (node === undefined) return "";
  return tenant === undefined ? ` (${node} is kept for it)` : ` (${node} is kept for tenant ${tenant})`;
}
