/**
 * Looks after the goals of the regions that this node's machines are in: takes pins out when their time is over (PN1),
 * signs those again whose key was revoked, since machines follow them no more, keeps the releases that they may run
 * (KR1), and counts machines that run another version than their goal says.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Goal } from "#doors/deploy/goal/goal.ts";
import { livePins, pinOf } from "#doors/deploy/goal/pins.ts";
import type { FleetDesk, Seen } from "./desk.ts";
import type { Waking } from "./fleet.ts";
import type { GoalStore, Head } from "./goals.ts";
import type { KeptReleases } from "./kept-releases.ts";
import { driftOf } from "./drift.ts";
import type { KeyBook } from "./key-book.ts";

export type UpkeepPorts = {
  readonly goals: GoalStore;
  readonly keys: Pick<KeyBook, "trusted">;
  readonly desk: Pick<FleetDesk, "places" | "known">;
  readonly news: Waking;
  readonly releases: Pick<KeptReleases, "keep">;
  readonly clock: Clock;
  readonly warn: (why: string) => void;
};

export type Found = { readonly drift: number; readonly pinned: number };

const lookEveryMs = 5_000;

export class Upkeep {
  readonly #ports: UpkeepPorts;
  found: Found = { drift: 0, pinned: 0 };

  constructor(ports: UpkeepPorts) {
    this.#ports = ports;
  }

  /** Until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, warn } = this.#ports;
    while (!signal.aborted) {
      await this.look().catch((error: unknown) => warn((error as Error).message));
      await clock.sleep(lookEveryMs, signal).catch(() => undefined);
    }
  }

  async look(): Promise<void> {
    const { goals, desk, releases, warn } = this.#ports;
    const seen = desk.known();
    const revoked = new Set((await this.#ports.keys.trusted()).revoked);
    let [drift, pinned] = [0, 0];
    for (const { tenant, region } of desk.places()) {
      const mine = seen.filter((one) => one.tenant === tenant && one.region === region);
      for (const head of await goals.heads(tenant, region)) {
        const found = countDrift(head.goal, mine);
        drift += found.drift;
        pinned += found.pinned;
        await this.#renew({ tenant, region }, head, revoked.has(head.signed.key));
        const { service } = head.goal;
        await releases.keep({ tenant, service, region }, head).catch((error: unknown) => {
          warn(`keep releases of ${service} in ${region}: ${(error as Error).message}`);
        });
      }
    }
    this.found = { drift, pinned };
  }

  async #renew(
    at: { readonly tenant: string; readonly region: string },
    head: Head,
    isRevoked: boolean,
  ): Promise<void> {
    const { goals, news, clock } = this.#ports;
    const { pins = [], service } = head.goal;
    const live = livePins(pins, clock.wallMs());
    if (live.length === pins.length && !isRevoked) return;
    try {
      news.wake(await goals.amend({ ...at, service }, head, { pins: [...live] }));
    } catch (error) {
      if (!isFault(error, "stale")) throw error; // a newer goal, which has no ended pins
    }
  }
}

/** Pure. Machines outside the share are to run what ended well last, if they run anything. */
export function countDrift(goal: Goal, seen: readonly Seen[]): Found {
  const ours = seen.filter(({ labels }) => goal.labels.every((label) => labels.includes(label)));
  const pinned = ours.filter((one) => pinOf(one, goal.pins) !== undefined).length;
  return { drift: ours.filter((one) => driftOf(one, goal) !== undefined).length, pinned };
}
