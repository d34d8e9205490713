/** The node of the protocol's benchmark: a kernel on SQLite behind a node's own port, in a process of its own. */
import { Rig } from "#bench/kernel/rig.ts";
import { serveRig } from "#bench/served.ts";

const shards = Number(process.argv[2] ?? "1");
const rig = await Rig.start({ store: { kind: "sqlite" }, shards });
process.send?.(await serveRig(rig));
