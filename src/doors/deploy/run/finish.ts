/** The end of a release: what ended well becomes the version to go back to, and what did not is rolled back. */
import { isFault } from "#base/fault.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import type { Fleet, Waking } from "#doors/deploy/fleet/fleet.ts";
import type { At, GoalStore, Head } from "#doors/deploy/fleet/goals.ts";
import type { FinishSpec, RollbackSpec } from "#doors/deploy/plan.ts";
import { wholePpm } from "#doors/deploy/service/service-file.ts";

export type FinishPorts = { readonly goals: GoalStore; readonly fleet: Fleet; readonly desk: Waking };

const lookEveryMs = 300;
/** How long machines may take to go back before the task says who has not. */
const backMsMax = 5 * 60_000;

export const finishRunner =
  (ports: FinishPorts) =>
  async (context: RunContext): Promise<RunOutcome> => {
    const spec = JSON.parse(context.task.spec) as FinishSpec;
    const { tenant } = context.task;
    if (spec.outcome === "kept") {
      for (const region of spec.regions) await keep({ tenant, service: spec.service, region }, spec, context, ports);
      return done({ outcome: "kept", manifest: spec.manifest });
    }
    if (spec.rollback === "manual") return done({ outcome: "left", why: spec.why });
    let rolledBack = 0;
    for (const region of spec.regions) {
      const at = { tenant, service: spec.service, region };
      const head = await ports.goals.head(at);
      // Another release has taken over, or this one never got as far as this region.
      if (!head || head.goal.release !== context.task.jobId) continue;
      if (head.goal.kind === "release") await goBack(at, head, head.goal.stable, context, ports);
      rolledBack += 1;
    }
    if (rolledBack === 0) return done({ outcome: "nothing-to-roll-back", why: spec.why });
    return done({ outcome: "rolled-back", why: spec.why, ...(await machinesBack(spec, context, ports)) });
  };

/** The version is the one to go back to, and machines that are new from now on take it (AG4). */
async function keep(
  at: At,
  { manifest }: { readonly manifest: string },
  { task }: RunContext,
  { goals, desk }: FinishPorts,
): Promise<void> {
  await goals.setStable(at, manifest);
  const head = await goals.head(at);
  if (head?.goal.release !== task.jobId || head.goal.manifest !== manifest || head.goal.stable === manifest) return;
  try {
    desk.wake(await goals.amend(at, head, { stable: manifest }));
  } catch (error) {
    if (!isFault(error, "stale")) throw error; // a newer release has taken over
  }
}

/** To the version that was good before the present one. */
export const rollbackRunner =
  (ports: FinishPorts) =>
  async (context: RunContext): Promise<RunOutcome> => {
    const spec = JSON.parse(context.task.spec) as RollbackSpec;
    const { tenant } = context.task;
    for (const region of spec.regions) {
      const at = { tenant, service: spec.service, region };
      const head = await ports.goals.head(at);
      const stable = await ports.goals.stable(at);
      if (!head || !stable) continue;
      // In the middle of a release the stable version is the one before it; after a release it is the release itself.
      const to = head.goal.manifest === stable.manifest ? stable.before : stable.manifest;
      if (head.goal.kind === "rollback" && head.goal.release === context.task.jobId) continue;
      if (to === null) continue;
      await goBack(at, head, to, context, ports);
      await ports.goals.setStable(at, to);
    }
    const back = await machinesBack(spec, context, ports);
    return back.machines === 0
      ? { kind: "failed", reason: "user-failure", message: "there is no earlier version to go back to" }
      : done({ outcome: "rolled-back", ...back });
  };

/** A rollback is a newer goal that names an old manifest, for all machines at once: that version was good. */
async function goBack(
  at: At,
  head: Head,
  manifest: string | null,
  { task }: RunContext,
  { goals, desk }: FinishPorts,
): Promise<void> {
  const written = await goals.append(at, head, {
    kind: "rollback",
    halted: head.goal.halted,
    release: task.jobId,
    manifest,
    labels: head.goal.labels,
    stable: manifest,
    sharePpm: wholePpm,
    named: [],
    wave: 0,
    evidence: null,
  });
  desk.wake(written);
}

/** Waits until the machines answer with what their goal says, within a bound. */
async function machinesBack(
  { service, regions }: RollbackSpec,
  { task: { tenant }, clock, signal }: RunContext,
  { goals, fleet }: FinishPorts,
): Promise<{ readonly machines: number; readonly back: number }> {
  const deadlineMs = clock.monotonicMs() + backMsMax;
  for (;;) {
    let [machines, back] = [0, 0];
    for (const region of regions) {
      const goal = (await goals.head({ tenant, service, region }))?.goal;
      if (goal?.kind !== "rollback" || goal.manifest === null) continue;
      const { manifest, labels, release, pins = [] } = goal;
      const of = { tenant, service, labels, release, manifest, regions: [{ region, pins }] };
      const counts = await fleet.tally({ ...of, ...everyone });
      machines += counts.targets;
      back += counts.running;
    }
    if (back === machines || clock.monotonicMs() >= deadlineMs) return { machines, back };
    await clock.sleep(lookEveryMs, signal);
  }
}

/** Whatever their reports are about, and however old these are. */
const everyone = {
  sharePpm: wholePpm,
  named: [],
  activatedAgoMs: Number.MAX_SAFE_INTEGER,
  silentAfterMs: Number.MAX_SAFE_INTEGER,
  wantsPlaces: false,
};

const done = (payload: object): RunOutcome => ({ kind: "done", payload: JSON.stringify(payload) });
