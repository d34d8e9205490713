/** The shell door on a node. */
import type { OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import { planLabel, taskLabel } from "./plan.ts";
import { shellPlanners, shellRunners } from "./run.ts";

export const openShell = ({ place }: Pick<DoorPorts, "place">): OpenDoor => ({
  labels: [taskLabel, planLabel],
  ...(place && { runners: shellRunners(place), planners: shellPlanners }),
});
