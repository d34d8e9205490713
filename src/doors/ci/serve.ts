/** The CI door on a node. */
import { join } from "node:path";
import { arch } from "node:os";
import { Fault } from "#base/fault.ts";
import type { OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import type { CiSettings } from "./config.ts";
import { cellRunner } from "./job/cell-runner.ts";
import { door, kinds, planLabel, sandboxLabel, taskLabel } from "./plan.ts";
import { ciPrinted } from "./printed.ts";
import { bookOf } from "./repositories/book.ts";
import { openCiServices } from "./services/open.ts";
import { Mirrors } from "./repositories/mirrors.ts";
import { ciRoutes } from "./routes.ts";
import { ciPlanners } from "./runs/planners.ts";

export async function openCi(ports: DoorPorts, settings: CiSettings): Promise<OpenDoor> {
  const { node, stored, records, clock, client, live, place, dataFolder } = ports;
  const services = await openCiServices(ports);
  const book = bookOf(records);
  const mirrors = new Mirrors(join(dataFolder, "ci", "mirrors"));
  const printed = ciPrinted(stored.store);
  const isBoxed = place !== undefined && isolated(settings, place.boxed?.sandbox.about.kind === "bubblewrap");
  const labels = [...new Set([...settings.labels, arch()].map((label) => `runner=${label.toLowerCase()}`))];
  return {
    labels: [taskLabel, planLabel, ...(isBoxed ? [sandboxLabel] : []), ...labels],
    printed: { [door]: printed },
    http: (request) => services.http(request),
    routes: ciRoutes({
      client,
      clock,
      live,
      printed,
      book,
      mirrors,
      start: { client, blobs: stored.blobs },
    }),
    ...(place && {
      runners: {
        [kinds.job]: cellRunner({
          node,
          client,
          place,
          isBoxed,
          book,
          mirrors,
          services,
          url: () => settings.url ?? ports.origin(),
          actions: settings.actions,
        }),
      },
      planners: ciPlanners,
    }),
  };
}

function isolated({ isolation }: CiSettings, hasSandbox: boolean): boolean {
  if (isolation === "sandbox" && !hasSandbox)
    throw new Fault("invalid", "open the CI door", {
      why: "ci.isolation is sandbox, and bubblewrap cannot be used here",
      try: "install bubblewrap, or set ci.isolation to auto",
    });
  return isolation !== "none" && hasSandbox;
}
