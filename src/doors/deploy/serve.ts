/** The deploy door on a node. */
import { join } from "node:path";
import type { OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import { FleetDesk } from "./fleet/desk.ts";
import { fleetOf, seenMethod } from "./fleet/fleet.ts";
import { GoalStore } from "./fleet/goals.ts";
import { openSigner } from "./fleet/signing-key.ts";
import { kinds, planFinish, planLabel, planWave, taskLabel } from "./plan.ts";
import { deployRoutes } from "./routes.ts";
import { buildRunner } from "./run/build.ts";
import { finishRunner, rollbackRunner } from "./run/finish.ts";
import { waveRunner } from "./run/wave.ts";
import type { DeploySettings } from "./config.ts";

export async function openDeploy(ports: DoorPorts, { signingKey }: DeploySettings): Promise<OpenDoor> {
  const { stored, clock, client, node, peers, place, dataFolder } = ports;
  const { store, index } = stored;
  const signer = await openSigner(join(dataFolder, "deploy"), signingKey);
  const goals = new GoalStore({ index, store, signer, clock });
  const desk = new FleetDesk(goals, clock);
  const fleet = fleetOf(node, desk, peers);
  const running = { goals, desk, fleet };
  return {
    labels: [taskLabel, planLabel],
    ...(place && {
      runners: {
        [kinds.build]: buildRunner({ place, store, goals, signer }),
        [kinds.wave]: waveRunner(running),
        [kinds.finish]: finishRunner(running),
        [kinds.rollback]: rollbackRunner(running),
      },
      planners: { [kinds.planWave]: planWave, [kinds.planFinish]: planFinish },
    }),
    calls: { [seenMethod]: () => Promise.resolve(desk.seen()) },
    routes: deployRoutes({ client, store, signer, ...running }),
  };
}
