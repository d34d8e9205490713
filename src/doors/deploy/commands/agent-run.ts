import { command, serverFlags } from "#door/command.ts";

export const agentRun = command({
  name: "agent run",
  about: "Look after the services of this machine: stage, switch, probe, report.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    machine: { type: "string", value: "NAME", about: "what the machine is called (its host name)" },
    region: { type: "string", value: "REGION", about: "where it is" },
    label: { type: "strings", value: "NAME=VALUE", about: "what services may ask for; may be given several times" },
    root: { type: "string", value: "FOLDER", about: "where versions are kept (./millrace-agent)" },
    rack: { type: "string", value: "RACK", about: "machines of one rack give each other bytes first" },
    peer: {
      type: "string",
      value: "HOST[:PORT]",
      about: "where other machines reach this one (its address towards the node); `none`: all bytes come from nodes",
    },
    upload: { type: "string", value: "SIZE", about: "bytes a second that it sends to other machines, such as 60MiB" },
    trust: { type: "strings", value: "FILE", about: "a public key, as PEM; left out: the node's at the first start" },
  },
  examples: ["millrace agent run --server https://eu.example:8980 --region eu --label role=web"],
  async run({ values }, world) {
    if (values.region === undefined) {
      world.note("agent run: say where the machine is, for example: --region eu");
      return 2;
    }
    const { runAgent } = await import("./run-agent.ts");
    const { region, machine, label = [], root, trust, rack, peer, upload } = values;
    const options = { region, machine, labels: label, root, trust, rack, peer, upload };
    await runAgent(options, await world.http(values), world);
    return 0;
  },
});
