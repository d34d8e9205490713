/** An instant of a schedule has one job, whichever node dies at which moment (SC1, SC2). */
import { Schedule } from "#schedules/schedule.ts";
import { keyOf } from "#schedules/timer.ts";
import { instantName, minuteMs, scheduleName } from "#sim/actors/schedules.ts";
import type { Cluster } from "#sim/world/cluster.ts";
import { epochMs } from "#sim/world/machine.ts";
import type { Checker } from "./court.ts";

const named = /^instant (\S+) (\d+)$/;

export const oneJobAnInstant: Checker = {
  invariant: "SC1",
  promise: "an instant of a schedule has at most one job",
  event(court, { model }, event) {
    if (event.kind !== "job-submitted" || !named.test(event.name)) return undefined;
    const before = court.instants.get(event.name);
    if (before !== undefined) return `${event.name} has job ${before}, and job ${event.job} of shard ${model.shard}`;
    court.instants.set(event.name, `${event.job} of shard ${model.shard}`);
    return undefined;
  },
};

/** What is settled has its job, where no instant may be left out; and what was due when all had healed is settled. */
export async function instantsMissed({ profile, court, database, healedAtMs }: Cluster): Promise<string | undefined> {
  const { faults, clockDrift, schedules } = profile;
  // A node whose clock is behind comes later, one whose clock was ahead has been early.
  if (faults.has("wall-clock-jump") || clockDrift > 0) return undefined;
  const { records } = database.store.connect();
  const due = epochMs + Math.floor(healedAtMs / minuteMs) * minuteMs;
  for (const [i, { tenant, catchUp, dueBefore }] of schedules.entries()) {
    const name = scheduleName(i);
    const found = await records.read({ tenant, kind: "schedule", name });
    if (!found) return `schedule ${name} of ${tenant} was never made`;
    const { settledMs, trouble } = Schedule.parse(JSON.parse(found.document));
    if (trouble) return `${name} has trouble: ${trouble.why}`;
    if (settledMs < due) return `${name} is settled up to ${settledMs}, not ${due}`;
    if (catchUp !== "all") continue;
    for (let atMs = epochMs - (dueBefore - 1) * minuteMs; atMs <= settledMs; atMs += minuteMs)
      if (!court.instants.has(instantName(keyOf({ tenant, name }), atMs)))
        return `${name} is settled up to ${settledMs}, and ${atMs} has no job`;
  }
  return undefined;
}
