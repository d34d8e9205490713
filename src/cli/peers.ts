import { dataFolder, defaultDataPath, publishedEdge } from "#app/data-folder.ts";
import type { PeersView } from "#app/compose-mesh.ts";
import type { PeerView } from "#app/mesh-tags.ts";
import { Fault } from "#base/fault.ts";
import { formatDuration } from "#base/units.ts";
import { command, jsonFlag } from "./command.ts";

export const peers = command({
  name: "peers",
  about: "List the members of the mesh, as one node sees them.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...jsonFlag,
    server: { type: "string", value: "URL", about: "the node to ask, such as http://host:8980 ($MILLRACE_SERVER)" },
    token: {
      type: "string",
      value: "TOKEN",
      about: "who asks; better said by $MILLRACE_TOKEN, which others cannot see",
    },
    data: {
      type: "string",
      value: "FOLDER",
      about: "the data folder of the node to ask ($MILLRACE_DATA, ~/.millrace)",
    },
  },
  examples: ["millrace peers", "millrace peers --json"],
  async run({ values }, { env, out }) {
    const view = await askPeers(baseOf(values, env), values.token ?? (env["MILLRACE_TOKEN"] || undefined));
    if (values.json) for (const peer of view.peers) out(JSON.stringify(peer));
    else for (const line of tableOf(view.peers)) out(line);
    return 0;
  },
});

function baseOf(values: { readonly server?: string; readonly data?: string }, env: NodeJS.ProcessEnv): string {
  const given = values.server ?? (values.data === undefined ? env["MILLRACE_SERVER"] || undefined : undefined);
  if (given !== undefined) return given.replace(/\/+$/, "");
  const folder = dataFolder(values.data ?? defaultDataPath(env));
  const published = publishedEdge(folder);
  if (published === undefined)
    throw new Fault("unavailable", "find node", { data: folder.path, why: "no node is running there" });
  return `http://${published}`;
}

async function askPeers(base: string, token: string | undefined): Promise<PeersView> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${base}/peers`, { headers }).catch((error: unknown) => {
    throw new Fault("unavailable", "ask for peers", { server: base, why: "no node answers there" }, error);
  });
  if (response.ok) return (await response.json()) as PeersView;
  const { title = "it does not say why" } = (await response.json().catch(() => ({}))) as { title?: string };
  const code = response.status === 404 ? "not-found" : response.status < 500 ? "invalid" : "unavailable";
  throw new Fault(code, "ask for peers", { status: response.status, why: title });
}

/** Columns as wide as what is in them. */
function tableOf(all: readonly PeerView[]): readonly string[] {
  const rows = [
    ["NAME", "STATE", "FOR", "ADDRESS", "LOAD", "TAGS"],
    ...all.map(({ name, self, state, sinceMs, address, load, tags }) => [
      self ? `${name} (asked)` : name,
      state === "dead" ? "failed" : state,
      formatDuration(sinceMs),
      address,
      load ? `${load.running}/${load.slots}` : "-",
      Object.entries(tags)
        .filter(([tag]) => tag !== "load")
        .map(([tag, value]) => `${tag}=${value}`)
        .join(" "),
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
