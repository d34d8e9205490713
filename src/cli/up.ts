import { formatDuration } from "#base/units.ts";
import { command, jsonFlag, type World } from "#door/command.ts";

export const up = command({
  name: "up",
  about: "Start a node: it records work, runs it, and answers every other command.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...jsonFlag,
    config: {
      type: "string",
      value: "FILE",
      about: "a configuration (YAML or JSON; $MILLRACE_CONFIG); config.yaml in the data folder otherwise",
    },
    set: {
      type: "strings",
      value: "PATH=VALUE",
      about: "one setting, such as worker.slots=8; may be repeated ($MILLRACE_WORKER_SLOTS)",
    },
    data: { type: "string", value: "FOLDER", about: "where to keep everything ($MILLRACE_DATA, ~/.millrace)" },
    join: { type: "string", value: "ADDRESSES", about: "members of a mesh to join: host:port, several with commas" },
    dev: { type: "boolean", about: "keep everything in a new folder that is thrown away at the end" },
  },
  examples: [
    "millrace up",
    "millrace up --data ./state",
    "millrace up --config node.yaml",
    "millrace up --set worker.slots=8 --set edge.listen=127.0.0.1:9000",
    "millrace up --config node.yaml --join 10.0.0.7:7946",
  ],
  async run({ values }, world) {
    const { withNode } = await import("./up-node.ts");
    const ready = (facts: UpFacts): void =>
      values.json ? world.out(JSON.stringify({ kind: "up", ...facts })) : announce(facts, world);
    return await withNode(values, world, ready);
  },
});

export type UpFacts = {
  readonly version: string;
  readonly node: string;
  readonly addresses: readonly string[];
  /** Where gRPC and HTTP are served, for other tools. */
  readonly edge: readonly string[];
  /** Signs a browser in as the operator, once, within minutes; undefined where nothing is served. */
  readonly login: { readonly url: string; readonly forMs: number } | undefined;
  /** Where other members of the mesh reach this node; undefined without a mesh. */
  readonly mesh: string | undefined;
  readonly data: string;
  readonly journal: { readonly kind: string; readonly durable: boolean; readonly notes: readonly string[] };
  readonly shards: number;
  readonly shardsHere: number;
  readonly slots: number;
  readonly labels: readonly string[];
  /** The flag that a command needs to find this node; empty for the default data folder. */
  readonly flag: string;
};

function announce(facts: UpFacts, { out }: World): void {
  const { journal, flag } = facts;
  out(`millrace ${facts.version} is up`);
  out(`  node      ${facts.node}`);
  for (const address of facts.addresses) out(`  address   ${address}`);
  for (const address of facts.edge) out(`  edge      ${address} (gRPC, HTTP/2, HTTP/1.1)`);
  if (facts.login) out(`  browser   ${facts.login.url} (once, within ${formatDuration(facts.login.forMs)})`);
  if (facts.mesh !== undefined) out(`  mesh      ${facts.mesh} (UDP and TCP)`);
  out(`  data      ${facts.data}`);
  out(`  journal   ${journal.kind}, ${journal.durable ? "durable" : "NOT durable"}`);
  for (const note of journal.notes) out(`            ${note}`);
  out(`  shards    ${facts.shardsHere} of ${facts.shards} here`);
  out(`  worker    ${facts.slots === 0 ? "none" : `${facts.slots} slots; ${facts.labels.join(" ")}`}`);
  out("");
  out("In another terminal:");
  out(`  npx millrace job submit${flag} --follow -- echo hello`);
  out(`  npx millrace job list${flag}`);
  out("Ctrl-C stops it: work that runs may finish first, and what is recorded is there at the next start.");
}
