import { formatSize } from "#base/units.ts";
import type { ShardStatus } from "#shard/node-status.ts";
import { command, nodeFlags } from "#door/command.ts";

export const shards = command({
  name: "shards",
  about: "List the shards: who owns each, and how much the asked node holds in its own.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: nodeFlags,
  examples: ["millrace shards"],
  async run({ values }, world) {
    await using remote = await world.connect(values);
    const [ownerships, status] = await Promise.all([remote.work.shards(), remote.status()]);
    for (const { shard, owner, epoch, remainingMs } of ownerships) {
      const here = status.shards.find((each) => each.shard === shard);
      if (values.json) world.out(JSON.stringify({ shard, owner, epoch, remainingMs, here }));
      else {
        world.out(`${String(shard).padStart(4)}  ${remainingMs > 0 ? owner : "no owner"}  epoch ${epoch}${held(here)}`);
      }
    }
    const { workBytes = 0, workBytesMax = 0 } = status.memory ?? {};
    if (workBytesMax > 0 && !values.json)
      world.out(
        `work of ${status.node} takes ${formatSize(workBytes)} of memory, and may take ${formatSize(workBytesMax)}`,
      );
    return 0;
  },
});

/** What a shard has to do, and what whoever does what waits there has to offer. */
function held(here: ShardStatus | undefined): string {
  if (!here) return "";
  const { phase, jobs, claims, ready, trouble } = here;
  const waiting = ready.map(({ requires, tasks }) => `, ${tasks} waiting for ${requires.join(" ") || "anybody"}`);
  return `  ${phase}  ${jobs} jobs, ${claims} claims${waiting.join("")}${trouble ? `  ${trouble}` : ""}`;
}
