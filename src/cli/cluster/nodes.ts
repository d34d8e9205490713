import { formatDuration } from "#base/units.ts";
import { command, serverFlags } from "#door/command.ts";

export const nodes = command({
  name: "nodes",
  about: "List the nodes of the cluster.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace nodes"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { showCluster } = await import("#api/cluster.ts");
    const { tableLines } = await import("#door/table.ts");
    const cluster = await apiOf(values, world.env, "list nodes")(showCluster, {});
    if (values.json) {
      for (const node of cluster.nodes) world.out(JSON.stringify(node));
      return 0;
    }
    const rows = cluster.nodes.map(({ node, state, alive, address, seenAgoMs, facts }) => [
      node,
      alive ? state : "gone",
      address,
      `${formatDuration(seenAgoMs)} ago`,
      Object.entries(facts)
        .map(([name, value]) => `${name}=${value}`)
        .join(" "),
    ]);
    for (const line of tableLines(["NODE", "STATE", "ADDRESS", "SEEN", "FACTS"], rows)) world.out(line);
    return 0;
  },
});
