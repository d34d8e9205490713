import { formatDuration } from "#base/units.ts";
import { command, nodeFlags } from "#door/command.ts";

export const nodes = command({
  name: "nodes",
  about: "List the nodes of the cluster.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: nodeFlags,
  examples: ["millrace nodes"],
  async run({ values }, world) {
    await using remote = await world.connect(values);
    for (const node of await remote.work.nodes()) {
      if (values.json) world.out(JSON.stringify(node));
      else {
        const facts = Object.entries(node.facts).map(([name, value]) => `${name}=${value}`);
        const state = node.alive ? node.state : "gone";
        world.out(
          `${node.node}  ${state}  ${node.address}  seen ${formatDuration(node.seenAgoMs)} ago  ${facts.join(" ")}`,
        );
      }
    }
    return 0;
  },
});
