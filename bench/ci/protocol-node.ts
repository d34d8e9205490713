/** The node of the protocol's benchmark: a kernel on SQLite behind a node's own port, in a process of its own. */
import { systemClock } from "#door/system-clock.ts";
import { composeEdge } from "#app/compose/edge.ts";
import { Config } from "#app/config/config.ts";
import { newToken } from "#edge/identity/bearer.ts";
import { Rig } from "#bench/kernel/rig.ts";

const shards = Number(process.argv[2] ?? "1");
const rig = await Rig.start({ store: { kind: "sqlite" }, shards });
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
process.send?.({ address: `grpc:127.0.0.1:${edge?.ports[0]}`, token });
