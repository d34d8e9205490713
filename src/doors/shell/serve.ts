/** The shell door on a node. */
import type { DoorElsewhere, OpenDoor } from "#door/door.ts";
import type { DoorPorts, PlaceElsewhere } from "#door/ports.ts";
import { printedByResult } from "#worker/follow/printed-by-result.ts";
import { door, planLabel, taskLabel } from "./plan.ts";
import { shellPlanners, shellRunners } from "./run.ts";

export const openShell = ({ place, stored }: Pick<DoorPorts, "place" | "stored">): OpenDoor => ({
  labels: [taskLabel, planLabel],
  printed: { [door]: printedByResult(stored.blobs) },
  ...(place && { runners: shellRunners(place), planners: shellPlanners }),
});

export const shellElsewhere = (place: PlaceElsewhere): DoorElsewhere => ({
  labels: [taskLabel],
  runners: shellRunners(place),
});
