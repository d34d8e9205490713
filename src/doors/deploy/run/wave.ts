/** Rolls a manifest out to a share of the machines, and waits until their reports decide whether it is healthy. */
import { Fault, isFault } from "#base/fault.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import { isTarget, type Fleet, type Waking } from "#doors/deploy/fleet/fleet.ts";
import type { Seen } from "#doors/deploy/fleet/desk.ts";
import type { ReleaseControls } from "#doors/deploy/fleet/controls.ts";
import type { At, GoalStore, Head } from "#doors/deploy/fleet/goals.ts";
import { frozenBy } from "#doors/deploy/service/freeze.ts";
import { isInShare, membersOf } from "#doors/deploy/goal/membership.ts";
import { withChecks } from "#doors/deploy/health/checks.ts";
import { judge, type MachineReport, type Verdict } from "#doors/deploy/health/judge.ts";
import type { WaveResult, WaveSpec } from "#doors/deploy/plan.ts";
import { specWithService } from "#doors/deploy/service/stored.ts";
import { Checks } from "./measure.ts";

export type WavePorts = {
  readonly goals: GoalStore;
  readonly fleet: Fleet;
  readonly desk: Waking;
  readonly controls: Pick<ReleaseControls, "paused">;
};

const lookEveryMs = 300;

export const waveRunner =
  (ports: WavePorts) =>
  async (context: RunContext): Promise<RunOutcome> => {
    try {
      return await rollOut(context, ports);
    } catch (error) {
      // A halt, or a newer goal of another release: a second attempt would find the same.
      if (isFault(error, "invalid") || isFault(error, "stale"))
        return { kind: "failed", reason: "user-failure", message: error.message };
      throw error;
    }
  };

async function rollOut(context: RunContext, { goals, fleet, desk, controls }: WavePorts): Promise<RunOutcome> {
  const spec = specWithService<WaveSpec>(context.task.spec);
  const { jobId: release, tenant } = context.task;
  const wave = spec.service.waves[spec.wave];
  if (!wave) throw new Fault("invalid", "roll out wave", { wave: spec.wave, why: "the service has no such wave" });
  await mayBegin(context, spec, controls);
  const targets = (await fleet.machines(tenant)).filter((machine) => isTarget(machine, spec.service.targets));
  const names = targets.map(({ machine }) => machine);
  const members = membersOf(names, release, wave.share);
  let activatedAtMs = 0;
  for (const region of spec.service.targets.regions) {
    const head = await activate({ tenant, service: spec.service.service, region }, spec, release, members, goals);
    desk.wake(head);
    activatedAtMs = Math.max(activatedAtMs, head.entry.atMs);
  }
  const { service: named } = spec.service;
  const checks = new Checks(spec.service.health.checks, {
    service: named,
    release,
    wave: spec.wave,
    manifest: spec.manifest,
  });
  let last: Verdict | undefined;
  for (;;) {
    const seen = (await fleet.machines(tenant)).filter((machine) => isTarget(machine, spec.service.targets));
    const nowMs = context.clock.wallMs();
    await checks.look({ nowMs, activatedAtMs }, context.signal);
    const ofMachines = judge(
      {
        members: membersOf([...new Set([...names, ...seen.map(({ machine }) => machine)])], release, wave.share),
        manifest: spec.manifest,
        activatedAtMs,
        nowMs,
        limits: spec.service.health,
        bakeMs: wave.bake,
      },
      reportsOf(seen, named, nowMs),
    );
    const verdict = withChecks(ofMachines, checks.states);
    if (verdict.why !== last?.why)
      context.report({ step: spec.wave + 1, name: verdict.why.slice(0, 200), status: "progress" });
    last = verdict;
    if (verdict.verdict === "healthy") return passed(spec, release, verdict, seen);
    if (verdict.verdict === "unhealthy") return { kind: "failed", reason: "user-failure", message: verdict.why };
    await context.clock.sleep(lookEveryMs, context.signal);
  }
}

/**
 * Waits while the release is paused, and outside a rollback while a freeze window holds. Only the beginning of a wave
 * waits: one that is on its way is judged and rolled back, paused or not.
 */
async function mayBegin(context: RunContext, spec: WaveSpec, controls: WavePorts["controls"]): Promise<void> {
  const { tenant, jobId } = context.task;
  for (let said = ""; ;) {
    const paused = await controls.paused(tenant, jobId);
    const frozen = frozenBy(spec.service.freeze, context.clock.wallMs());
    if (!paused && !frozen) return;
    const why = paused ? `paused by ${paused.by}` : `frozen: ${frozen?.text}`;
    if (why !== said) context.report({ step: spec.wave + 1, name: why.slice(0, 200), status: "progress" });
    said = why;
    await context.clock.sleep(lookEveryMs, context.signal);
  }
}

/** Writes the wave's goal, once: a second attempt finds what the first one wrote. */
async function activate(
  at: At,
  { service, wave, manifest, evidence }: WaveSpec,
  release: string,
  members: readonly string[],
  goals: GoalStore,
): Promise<Head> {
  const head = await goals.head(at);
  if (head?.goal.kind === "release" && head.goal.release === release && head.goal.wave === wave) return head;
  if (head?.goal.halted)
    throw new Fault("invalid", "roll out wave", {
      service: at.service,
      region: at.region,
      why: "the service is halted; resume it first",
    });
  const sharePpm = service.waves[wave]?.share ?? 0;
  return await goals.append(at, head, {
    kind: "release",
    halted: false,
    release,
    manifest,
    labels: service.targets.labels,
    stable: (await goals.stable(at))?.manifest ?? null,
    sharePpm,
    named: members.filter((machine) => !isInShare(machine, release, sharePpm)),
    wave,
    evidence,
  });
}

/** By the time of this node: machines' clocks may be wrong. */
function reportsOf(seen: readonly Seen[], service: string, nowMs: number): ReadonlyMap<string, MachineReport> {
  const reports = new Map<string, MachineReport>();
  for (const { machine, reports: all } of seen) {
    const report = all.find((each) => each.service === service);
    if (!report) continue;
    const { state, running, why = "", agoMs } = report;
    // An idle machine has not begun yet: it is still to stage.
    reports.set(machine, { machine, state: state === "idle" ? "staging" : state, running, atMs: nowMs - agoMs, why });
  }
  return reports;
}

function passed({ wave, manifest }: WaveSpec, release: string, verdict: Verdict, seen: readonly Seen[]): RunOutcome {
  const bytes = Buffer.from(JSON.stringify({ release, wave, manifest, verdict, seen }));
  const evidence = sha256Digest(bytes);
  const result: WaveResult = { manifest, evidence, why: verdict.why };
  return { kind: "done", payload: JSON.stringify(result), outputs: [{ digest: evidence, bytes }], digests: [manifest] };
}
