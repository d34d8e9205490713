/** A wave's machines, counted by the nodes that hold them, with those that went missing on the way. */
import type { RunContext } from "#worker/runner.ts";
import type { Fleet, FleetCounts } from "#doors/deploy/fleet/fleet.ts";
import type { GoalStore } from "#doors/deploy/fleet/goals.ts";
import { isBounded } from "#doors/deploy/goal/next-share.ts";
import type { Counts } from "#doors/deploy/health/judge.ts";
import type { WaveSpec } from "#doors/deploy/plan.ts";
import { wholePpm } from "#doors/deploy/service/service-file.ts";
import { waveRegions } from "#doors/deploy/service/wave-regions.ts";
import type { Reached } from "./wave.ts";

export type WaveCounts = FleetCounts;
type WaveFleetPorts = { readonly goals: Pick<GoalStore, "head">; readonly fleet: Pick<Fleet, "tally"> };

export class WaveFleet {
  readonly #context: Pick<RunContext, "task" | "clock">;
  readonly #spec: WaveSpec;
  readonly #ports: WaveFleetPorts;
  readonly #missing: Missing;

  constructor(context: Pick<RunContext, "task" | "clock">, spec: WaveSpec, ports: WaveFleetPorts) {
    this.#context = context;
    this.#spec = spec;
    this.#ports = ports;
    this.#missing = new Missing(spec.service.health.silentAfter);
  }

  async look({ sharePpm, activatedAtMs, named }: Reached): Promise<WaveCounts> {
    const { task, clock } = this.#context;
    const { service, wave, manifest } = this.#spec;
    const regions = waveRegions(service, wave).map(async (region) => {
      const head = await this.#ports.goals.head({ tenant: task.tenant, service: service.service, region });
      return { region, pins: [...(head?.goal.pins ?? [])] };
    });
    const counts = await this.#ports.fleet.tally({
      tenant: task.tenant,
      service: service.service,
      labels: [...service.targets.labels],
      regions: await Promise.all(regions),
      release: task.jobId,
      manifest,
      sharePpm,
      named: [...named],
      activatedAgoMs: clock.wallMs() - activatedAtMs,
      silentAfterMs: service.health.silentAfter,
      wantsPlaces: isBounded(service.atOnce),
    });
    return { ...counts, ...this.#missing.added(counts, sharePpm, clock.monotonicMs()) };
  }
}

/**
 * Machines that were there and are not any more, because a node forgot them or does not answer, still belong to the
 * wave: they are waited for, and count as silent after the same time as others. Which of them are in the share is not
 * known, so as many as the share says are taken to be.
 */
export class Missing {
  readonly #silentAfterMs: number;
  #most = 0;
  #sinceMs: number | undefined;

  constructor(silentAfterMs: number) {
    this.#silentAfterMs = silentAfterMs;
  }

  added(counts: Counts & { readonly targets: number }, sharePpm: number, nowMs: number): Counts {
    this.#most = Math.max(this.#most, counts.targets);
    const missing = Math.round(((this.#most - counts.targets) * sharePpm) / wholePpm);
    const { machines, healthy, failed, silent, working } = counts;
    if (missing === 0) {
      this.#sinceMs = undefined;
      return { machines, healthy, failed, silent, working };
    }
    this.#sinceMs ??= nowMs;
    const isSilent = nowMs - this.#sinceMs > this.#silentAfterMs;
    return {
      machines: machines + missing,
      healthy,
      failed,
      silent: silent + (isSilent ? missing : 0),
      working: working + (isSilent ? 0 : missing),
    };
  }
}
