/** A kernel behind a node's own port, for a benchmark that runs it in a process of its own. */
import { composeEdge } from "#app/compose/edge.ts";
import { Config } from "#app/config/config.ts";
import { systemClock } from "#door/system-clock.ts";
import { newToken } from "#edge/identity/bearer.ts";
import type { Rig } from "#bench/kernel/rig.ts";

/** Serves the kernel until the parent process goes; returns how to reach it. */
export async function serveRig(rig: Rig): Promise<{ readonly address: string; readonly token: string }> {
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
  return { address: `grpc:127.0.0.1:${edge?.ports[0]}`, token };
}
