/** The node of `bench kernel -- --remote`: a kernel on PostgreSQL behind a node's own port, in a process of its own. */
import { systemClock } from "#door/system-clock.ts";
import { composeEdge } from "#app/compose/edge.ts";
import { Config } from "#app/config/config.ts";
import { newToken } from "#edge/identity/bearer.ts";
import { Rig } from "./rig.ts";

const [url = "", history = ""] = process.argv.slice(2);
const rig = await Rig.start({
  store: { kind: "postgres", server: { freshDatabase: () => Promise.resolve(url) } },
  history: history === "history",
});
const token = newToken();
const edge = await composeEdge(Config.parse({ edge: { listen: ["127.0.0.1:0"] } }), {
  clock: systemClock,
  node: rig.node,
  routed: rig.node,
  journal: rig.journal,
  notReady: () => [],
  owner: token,
  log: (line) => process.stderr.write(`${line}\n`),
});

process.on("disconnect", () => process.exit(0));
process.send?.({ address: `grpc:127.0.0.1:${edge?.ports[0]}`, token, digests: rig.digests });
