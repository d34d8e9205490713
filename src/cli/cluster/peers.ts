import type { PeersView } from "#app/compose/mesh.ts";
import type { PeerView } from "#app/peers/mesh-tags.ts";
import { formatDuration } from "#base/units.ts";
import { command, serverFlags } from "#door/command.ts";
import { tableLines } from "#door/table.ts";
import { askServer, serverOf } from "#app/client/server.ts";

export const peers = command({
  name: "peers",
  about: "List the members of the mesh, as one node sees them.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace peers", "millrace peers --json"],
  async run({ values }, { env, out }) {
    const answer = await askServer(serverOf(values, env), "/peers", "ask for peers");
    const view = (await answer.json()) as PeersView;
    if (values.json) for (const peer of view.peers) out(JSON.stringify(peer));
    else for (const line of tableLines(headings, view.peers.map(rowOf))) out(line);
    return 0;
  },
});

const headings = ["NAME", "STATE", "FOR", "ADDRESS", "LOAD", "TAGS"] as const;

const rowOf = ({ name, self, state, sinceMs, address, load, tags }: PeerView): readonly string[] => [
  self ? `${name} (asked)` : name,
  state === "dead" ? "failed" : state,
  formatDuration(sinceMs),
  address,
  load ? `${load.running}/${load.slots}` : "-",
  Object.entries(tags)
    .filter(([tag]) => tag !== "load")
    .map(([tag, value]) => `${tag}=${value}`)
    .join(" "),
];
