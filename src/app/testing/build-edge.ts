/** A build cache on its own port, over the test's store. */
import type { Store } from "#blobs/store.ts";
import { startEdge, type Edge } from "#edge/edge.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { addBuildServices } from "./build-services.ts";

export const startBuildEdge = (store: Store): Promise<Edge> =>
  startEdge({
    clock,
    listen: [{ host: "127.0.0.1", port: 0 }],
    identity: Identity.parse({}),
    services: (server) => addBuildServices(server, { store, clock }),
    notReady: () => [],
    log: new Log(() => {}, clock),
    h2: { drainMs: 100 },
  });
