/**
 * What a wave waits for before it begins, besides approvals: a freeze window, the release's own time, and services that
 * come first. It waits as a stage that is not planned yet, and so holds no worker.
 */
import type { Clock } from "#base/clock.ts";
import type { Plan } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Planner } from "#worker/runner.ts";
import type { GoalStore } from "#doors/deploy/fleet/goals.ts";
import { planWave, type Release } from "#doors/deploy/plan.ts";
import { frozenBy } from "#doors/deploy/service/freeze.ts";
import type { ServiceFile } from "#doors/deploy/service/service-file.ts";
import { specWithService } from "#doors/deploy/service/stored.ts";

export type BeginPorts = { readonly goals: Pick<GoalStore, "head" | "stable">; readonly clock: Pick<Clock, "wallMs"> };

export type Hold = { readonly why: string; readonly forMs: number };

const lookEveryMs = 10_000;
const frozenLookMs = 60_000;

/** Undefined: nothing holds it up. */
export async function holdOf(
  { goals, clock }: BeginPorts,
  tenant: string,
  { service, notBeforeMs }: Pick<Release, "service" | "notBeforeMs">,
): Promise<Hold | undefined> {
  const nowMs = clock.wallMs();
  if (notBeforeMs !== undefined && nowMs < notBeforeMs)
    return { why: `not before ${new Date(notBeforeMs).toISOString()}`, forMs: notBeforeMs - nowMs };
  const frozen = frozenBy(service.freeze, nowMs);
  if (frozen) return { why: `frozen: ${frozen.text}`, forMs: frozenLookMs };
  const busy = await busyBefore(goals, tenant, service);
  return busy === undefined ? undefined : { why: busy, forMs: lookEveryMs };
}

/** A service that comes first is ready where its newest goal is the version that ended well. */
async function busyBefore(
  goals: BeginPorts["goals"],
  tenant: string,
  { notBefore, targets }: ServiceFile,
): Promise<string | undefined> {
  for (const service of notBefore)
    for (const region of targets.regions) {
      const at = { tenant, service, region };
      const goal = (await goals.head(at))?.goal;
      if (goal?.kind !== "release") continue;
      if (goal.manifest !== (await goals.stable(at))?.manifest)
        return `not before ${service}: its release ${goal.release} has not ended in ${region}`;
    }
  return undefined;
}

export const planWaveWhenFree =
  (ports: BeginPorts): Planner =>
  async (inputs: PlanInputs, { task: { tenant } }): Promise<Plan> => {
    const planned = planWave(inputs);
    if (planned.kind !== "tasks") return planned;
    const hold = await holdOf(ports, tenant, specWithService<Release>(inputs.spec));
    return hold ? { kind: "wait", forMs: hold.forMs, signals: ["approve", "reject"] } : planned;
  };
