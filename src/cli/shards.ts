import { command, nodeFlags } from "./command.ts";

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
        const held = here
          ? `  ${here.phase}  ${here.jobs} jobs, ${here.claims} claims${here.trouble ? `  ${here.trouble}` : ""}`
          : "";
        world.out(`${String(shard).padStart(4)}  ${remainingMs > 0 ? owner : "no owner"}  epoch ${epoch}${held}`);
      }
    }
    return 0;
  },
});
