/** The node of `bench kernel -- --remote`: a kernel on PostgreSQL behind a node's own port, in a process of its own. */
import { serveRig } from "#bench/served.ts";
import { Rig } from "./rig.ts";

const [url = "", history = ""] = process.argv.slice(2);
const rig = await Rig.start({
  store: { kind: "postgres", server: { freshDatabase: () => Promise.resolve(url) } },
  history: history === "history",
});
process.send?.({ ...(await serveRig(rig)), digests: rig.digests });
