/** Rolls a manifest out to a share of the machines, and waits until their reports decide whether it is healthy. */
import { Fault, isFault } from "#base/fault.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import type { Fleet, Waking } from "#doors/deploy/fleet/fleet.ts";
import type { ReleaseControls } from "#doors/deploy/fleet/controls.ts";
import type { At, GoalStore, Head } from "#doors/deploy/fleet/goals.ts";
import { frozenBy } from "#doors/deploy/service/freeze.ts";
import type { Tally } from "#doors/deploy/fleet/tally.ts";
import { nextShare } from "#doors/deploy/goal/next-share.ts";
import { withChecks } from "#doors/deploy/health/checks.ts";
import { judge, type Verdict } from "#doors/deploy/health/judge.ts";
import type { WaveResult, WaveSpec } from "#doors/deploy/plan.ts";
import { specWithService } from "#doors/deploy/service/stored.ts";
import { waveRegions } from "#doors/deploy/service/wave-regions.ts";
import { Checks } from "./measure.ts";
import { Progress } from "./progress.ts";
import { WaveFleet, type WaveCounts } from "./wave-fleet.ts";

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

async function rollOut(context: RunContext, ports: WavePorts): Promise<RunOutcome> {
  const { controls } = ports;
  const spec = specWithService<WaveSpec>(context.task.spec);
  const { jobId: release } = context.task;
  const { service } = spec;
  const wave = service.waves[spec.wave];
  if (!wave) throw new Fault("invalid", "roll out wave", { wave: spec.wave, why: "the service has no such wave" });
  await mayBegin(context, spec, controls);
  const about = { service: service.service, release, wave: spec.wave, manifest: spec.manifest };
  const checks = new Checks(service.health.checks, about);
  const progress = new Progress(context, spec.wave + 1);
  const fleet = new WaveFleet(context, spec, ports);
  let reached = await activate(context, spec, await fleet.look(notYet), ports);
  for (;;) {
    let seen = await fleet.look(reached);
    // More machines may move when those before them are done (goal/next-share.ts).
    if (reached.sharePpm < wave.share) {
      reached = await activate(context, spec, seen, ports);
      seen = await fleet.look(reached);
    }
    const nowMs = context.clock.wallMs();
    const { activatedAtMs } = reached;
    await checks.look({ nowMs, activatedAtMs }, context.signal);
    const question = { limits: service.health, bakeMs: wave.bake, activatedAgoMs: nowMs - activatedAtMs };
    const ofMachines = judge(seen, question);
    const verdict = partly(withChecks(ofMachines, checks.states), reached.sharePpm, wave.share);
    progress.say(verdict);
    if (verdict.verdict === "healthy") return await passed(spec, context.task, verdict, ports);
    if (verdict.verdict === "unhealthy")
      return { kind: "failed", reason: "user-failure", message: withFailures(verdict.why, seen) };
    await context.clock.sleep(lookPauseMs(seen.targets), context.signal);
  }
}

const notYet: Reached = { sharePpm: 0, activatedAtMs: 0, named: [] };

/** Nodes count their machines at each look: large fleets are looked at less often. */
const lookPauseMs = (machines: number): number => Math.min(2_000, Math.max(lookEveryMs, machines / 20));

const withFailures = (why: string, { failures }: Pick<Tally, "failures">): string =>
  [why, ...failures.map((one) => `${one.machine}: ${one.why}`)].join("; ").slice(0, 1_000);

/** A part of a wave may fail it, but not pass it. */
const partly = (verdict: Verdict, sharePpm: number, wantedPpm: number): Verdict =>
  sharePpm >= wantedPpm || verdict.verdict === "unhealthy"
    ? verdict
    : { ...verdict, verdict: "wait", why: `${percent(sharePpm)} of ${percent(wantedPpm)} activated; ${verdict.why}` };

const percent = (ppm: number): string => `${ppm / 10_000}%`;

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

export type Reached = {
  readonly sharePpm: number;
  readonly activatedAtMs: number;
  /** Machines that are in the wave whatever their place. */
  readonly named: readonly string[];
};

/** Writes the wave's goal in each of its regions, as far as it may go now. */
async function activate(context: RunContext, spec: WaveSpec, seen: WaveCounts, ports: WavePorts): Promise<Reached> {
  const { jobId: release, tenant } = context.task;
  const { service, wave } = spec;
  const wantedPpm = service.waves[wave]?.share ?? 0;
  const regions = waveRegions(service, wave);
  const places = regions.map((region) => ({ tenant, service: service.service, region }));
  const heads = await Promise.all(places.map(async (at) => await ports.goals.head(at)));
  const isOurs = (head: Head | undefined): boolean =>
    head?.goal.kind === "release" && head.goal.release === release && head.goal.wave === wave;
  const fromPpm = Math.min(...heads.map((head) => (head && isOurs(head) ? head.goal.sharePpm : 0)));
  const sharePpm = nextShare({ machines: seen.placed, fromPpm, toPpm: wantedPpm, atOnce: service.atOnce });
  let activatedAtMs = 0;
  const named = new Set<string>();
  for (const [index, at] of places.entries()) {
    const head = heads[index];
    // A second attempt finds what the first one wrote.
    const isWritten = head && isOurs(head) && head.goal.sharePpm >= sharePpm;
    const change = { spec, release, sharePpm, named: firstOf(seen, sharePpm) };
    const written = isWritten ? head : await append(at, head, change, ports.goals);
    if (!isWritten) ports.desk.wake(written);
    activatedAtMs = Math.max(activatedAtMs, written.entry.atMs);
    for (const machine of written.goal.named) named.add(machine);
  }
  return { sharePpm, activatedAtMs, named: [...named] };
}

/** A canary wave of a small fleet must not be empty: where the share has no machine, the first one is named. */
const firstOf = ({ lowest }: WaveCounts, sharePpm: number): readonly string[] =>
  lowest && sharePpm > 0 && lowest.place >= sharePpm ? [lowest.machine] : [];

type Step = {
  readonly spec: WaveSpec;
  readonly release: string;
  readonly sharePpm: number;
  readonly named: readonly string[];
};

async function append(at: At, head: Head | undefined, step: Step, goals: GoalStore): Promise<Head> {
  const { spec, release, sharePpm, named } = step;
  if (head?.goal.halted)
    throw new Fault("invalid", "roll out wave", {
      service: at.service,
      region: at.region,
      why: "the service is halted; resume it first",
    });
  return await goals.append(at, head, {
    kind: "release",
    halted: false,
    release,
    manifest: spec.manifest,
    labels: spec.service.targets.labels,
    stable: (await goals.stable(at))?.manifest ?? null,
    sharePpm,
    named: [...named],
    wave: spec.wave,
    evidence: spec.evidence,
    ...(spec.certificate && { certificate: { ...spec.certificate } }),
  });
}

/** The evidence names the cells of the wave's machines as they were then, each a document of its own. */
async function passed(
  { wave, manifest, service }: WaveSpec,
  { jobId: release, tenant }: RunContext["task"],
  verdict: Verdict,
  { goals, fleet }: Pick<WavePorts, "goals" | "fleet">,
): Promise<RunOutcome> {
  const cells = await fleet.snapshots({ tenant, regions: [...waveRegions(service, wave)] });
  const evidence = await goals.write(tenant, JSON.stringify({ release, wave, manifest, verdict, cells }));
  const certificate = await goals.certify({ service: service.service, release, wave, manifest, evidence });
  const result: WaveResult = { manifest, evidence, certificate, why: verdict.why };
  const digests = [manifest, evidence, ...cells.map(({ digest }) => digest)];
  return { kind: "done", payload: JSON.stringify(result), digests };
}
