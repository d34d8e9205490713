/** Takes pins out of goals when their time is over (PN1). Every node looks after the regions of its machines. */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import { livePins } from "#doors/deploy/goal/pins.ts";
import type { FleetDesk } from "./desk.ts";
import type { Waking } from "./fleet.ts";
import type { GoalStore } from "./goals.ts";

export type PinKeeperPorts = {
  readonly goals: GoalStore;
  readonly desk: Pick<FleetDesk, "places">;
  readonly news: Waking;
  readonly clock: Clock;
  readonly warn: (why: string) => void;
};

const lookEveryMs = 5_000;

/** Until the signal. */
export async function keepPins(ports: PinKeeperPorts, signal: AbortSignal): Promise<void> {
  const { clock, warn } = ports;
  while (!signal.aborted) {
    await endPins(ports).catch((error: unknown) => warn((error as Error).message));
    await clock.sleep(lookEveryMs, signal).catch(() => undefined);
  }
}

export async function endPins({ goals, desk, news, clock }: PinKeeperPorts): Promise<void> {
  for (const { tenant, region } of desk.places())
    for (const head of await goals.heads(tenant, region)) {
      const { pins = [], service } = head.goal;
      const live = livePins(pins, clock.wallMs());
      if (live.length === pins.length) continue;
      try {
        news.wake(await goals.amend({ tenant, service, region }, head, { pins: [...live] }));
      } catch (error) {
        if (!isFault(error, "stale")) throw error; // a newer goal, which has no ended pins
      }
    }
}
