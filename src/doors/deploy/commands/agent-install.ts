import { command, jsonFlag, type World } from "#door/command.ts";

const rootFlag = {
  root: { type: "string", value: "FOLDER", about: "the agent's folder (/var/lib/millrace-agent; ./millrace-agent)" },
} as const;

export const agentInstall = command({
  name: "agent install",
  about: "Set up an agent on this machine that starts by itself, stays up, and updates itself by releases.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...jsonFlag,
    join: { type: "string", value: "URL", about: "a node of the machine's region, such as https://eu.example:8980" },
    "token-file": { type: "string", value: "FILE", about: "a token with the role agent; it is copied" },
    ca: {
      type: "string",
      value: "FILE",
      about: "who signs certificates there, as PEM; left out: whom this machine trusts",
    },
    machine: { type: "string", value: "NAME", about: "what the machine is called (its host name)" },
    region: { type: "string", value: "REGION", about: "where it is" },
    label: { type: "strings", value: "NAME=VALUE", about: "what services may ask for; may be given several times" },
    rack: { type: "string", value: "RACK", about: "machines of one rack give each other bytes first" },
    peer: {
      type: "string",
      value: "HOST[:PORT]",
      about: "where other machines reach this one; `none`: bytes from nodes",
    },
    upload: { type: "string", value: "SIZE", about: "bytes a second that it sends to other machines, such as 60MiB" },
    trust: { type: "strings", value: "FILE", about: "a public key, as PEM; left out: the node's at the first start" },
    ...rootFlag,
  },
  examples: [
    "millrace agent install --join https://eu.example:8980 --token-file agent.token --region eu --label role=web",
  ],
  async run({ values }, world) {
    const { join, region } = values;
    const file = values["token-file"];
    if (join === undefined || region === undefined || file === undefined)
      return usage(world, "say --join, --token-file and --region", "agent install --join https://eu.example:8980 ...");
    const { installAgent } = await import("./install-agent.ts");
    const { label = [], trust = [], ...rest } = values;
    return await installAgent({ ...rest, join, region, tokenFile: file, labels: label, trust }, world);
  },
});

export const agentStatus = command({
  name: "agent status",
  about: "Show the agent of this machine and what it looks after. Exit code 1 if it does not run or no node answers.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: { ...jsonFlag, ...rootFlag },
  examples: ["millrace agent status", "millrace agent status --json"],
  async run({ values }, world) {
    const { showAgent } = await import("./install-agent.ts");
    return await showAgent(values, world);
  },
});

export const agentStop = command({
  name: "agent stop",
  about: "Stop the agent of this machine and what keeps it running; its services stay up.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: { ...jsonFlag, ...rootFlag },
  examples: ["millrace agent stop"],
  async run({ values }, world) {
    const { stopAgent } = await import("./install-agent.ts");
    const root = await stopAgent(values);
    if (values.json) world.out(JSON.stringify({ kind: "stopped", root }));
    return 0;
  },
});

function usage({ note }: World, what: string, example: string): 2 {
  note(`${what}; for example: millrace ${example}`);
  return 2;
}
