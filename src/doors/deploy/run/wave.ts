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
import { pinOf, type Pin } from "#doors/deploy/goal/pins.ts";
import { nextShare } from "#doors/deploy/goal/next-share.ts";
import { withChecks } from "#doors/deploy/health/checks.ts";
import { judge, type MachineReport, type Verdict } from "#doors/deploy/health/judge.ts";
import type { WaveResult, WaveSpec } from "#doors/deploy/plan.ts";
import { specWithService } from "#doors/deploy/service/stored.ts";
import { waveRegions } from "#doors/deploy/service/wave-regions.ts";
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

async function rollOut(context: RunContext, ports: WavePorts): Promise<RunOutcome> {
  const { fleet, controls } = ports;
  const spec = specWithService<WaveSpec>(context.task.spec);
  const { jobId: release, tenant } = context.task;
  const wave = spec.service.waves[spec.wave];
  if (!wave) throw new Fault("invalid", "roll out wave", { wave: spec.wave, why: "the service has no such wave" });
  await mayBegin(context, spec, controls);
  const targets = { ...spec.service.targets, regions: waveRegions(spec.service, spec.wave) };
  const seenNow = async () => {
    const pins = await pinsOf(ports.goals, { tenant, service: spec.service.service }, targets.regions);
    // PN2
    return (await fleet.machines(tenant)).filter(
      (machine) => isTarget(machine, targets) && !pinOf(machine, pins.get(machine.region)),
    );
  };
  const first = await seenNow();
  const { service: named } = spec.service;
  const about = { service: named, release, wave: spec.wave, manifest: spec.manifest };
  const checks = new Checks(spec.service.health.checks, about);
  let reached = await activate(context, spec, first, ports);
  let last: Verdict | undefined;
  for (;;) {
    const seen = await seenNow();
    // More machines may move when those before them are done (goal/next-share.ts).
    if (reached.sharePpm < wave.share) reached = await activate(context, spec, seen, ports);
    const nowMs = context.clock.wallMs();
    await checks.look({ nowMs, activatedAtMs: reached.activatedAtMs }, context.signal);
    const names = [...new Set([...first, ...seen].map(({ machine }) => machine))];
    const ofMachines = judge(
      {
        members: membersOf(names, release, reached.sharePpm),
        manifest: spec.manifest,
        activatedAtMs: reached.activatedAtMs,
        nowMs,
        limits: spec.service.health,
        bakeMs: wave.bake,
      },
      reportsOf(seen, named, nowMs),
    );
    const verdict = partly(withChecks(ofMachines, checks.states), reached.sharePpm, wave.share);
    if (verdict.why !== last?.why)
      context.report({ step: spec.wave + 1, name: verdict.why.slice(0, 200), status: "progress" });
    last = verdict;
    if (verdict.verdict === "healthy") return await passed(spec, release, { verdict, seen }, ports.goals);
    if (verdict.verdict === "unhealthy") return { kind: "failed", reason: "user-failure", message: verdict.why };
    await context.clock.sleep(lookEveryMs, context.signal);
  }
}

async function pinsOf(
  goals: GoalStore,
  at: Omit<At, "region">,
  regions: readonly string[],
): Promise<ReadonlyMap<string, readonly Pin[] | undefined>> {
  const heads = regions.map(async (region) => [region, (await goals.head({ ...at, region }))?.goal.pins] as const);
  return new Map(await Promise.all(heads));
}

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

type Reached = { readonly sharePpm: number; readonly activatedAtMs: number };

/** Writes the wave's goal in each of its regions, as far as it may go now. */
async function activate(
  context: RunContext,
  spec: WaveSpec,
  seen: readonly Seen[],
  ports: WavePorts,
): Promise<Reached> {
  const { jobId: release, tenant } = context.task;
  const { service, wave } = spec;
  const wantedPpm = service.waves[wave]?.share ?? 0;
  const regions = waveRegions(service, wave);
  const places = regions.map((region) => ({ tenant, service: service.service, region }));
  const heads = await Promise.all(places.map(async (at) => await ports.goals.head(at)));
  const isOurs = (head: Head | undefined): boolean =>
    head?.goal.kind === "release" && head.goal.release === release && head.goal.wave === wave;
  const fromPpm = Math.min(...heads.map((head) => (head && isOurs(head) ? head.goal.sharePpm : 0)));
  const done = new Set(seen.filter((one) => isDone(one, spec)).map(({ machine }) => machine));
  const { atOnce } = service;
  const question = { release, machines: seen, fromPpm, toPpm: wantedPpm, atOnce };
  const sharePpm = nextShare({ ...question, isDone: (machine) => done.has(machine) });
  const members = membersOf(
    seen.map(({ machine }) => machine),
    release,
    sharePpm,
  );
  let activatedAtMs = 0;
  for (const [index, at] of places.entries()) {
    const head = heads[index];
    // A second attempt finds what the first one wrote.
    const isWritten = head && isOurs(head) && head.goal.sharePpm >= sharePpm;
    const written = isWritten ? head : await append(at, head, { spec, release, sharePpm, members }, ports.goals);
    if (!isWritten) ports.desk.wake(written);
    activatedAtMs = Math.max(activatedAtMs, written.entry.atMs);
  }
  return { sharePpm, activatedAtMs };
}

const isDone = ({ reports }: Seen, { service, manifest }: WaveSpec): boolean =>
  reports.some(
    (report) =>
      report.service === service.service &&
      ((report.state === "healthy" && report.running === manifest) ||
        report.state === "failed" ||
        report.state === "reverted"),
  );

type Step = {
  readonly spec: WaveSpec;
  readonly release: string;
  readonly sharePpm: number;
  readonly members: readonly string[];
};

async function append(at: At, head: Head | undefined, step: Step, goals: GoalStore): Promise<Head> {
  const { spec, release, sharePpm, members } = step;
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
    named: members.filter((machine) => !isInShare(machine, release, sharePpm)),
    wave: spec.wave,
    evidence: spec.evidence,
    ...(spec.certificate && { certificate: { ...spec.certificate } }),
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

async function passed(
  { wave, manifest, service: { service } }: WaveSpec,
  release: string,
  { verdict, seen }: { readonly verdict: Verdict; readonly seen: readonly Seen[] },
  goals: Pick<GoalStore, "certify">,
): Promise<RunOutcome> {
  const bytes = Buffer.from(JSON.stringify({ release, wave, manifest, verdict, seen }));
  const evidence = sha256Digest(bytes);
  const certificate = await goals.certify({ service, release, wave, manifest, evidence });
  const result: WaveResult = { manifest, evidence, certificate, why: verdict.why };
  return { kind: "done", payload: JSON.stringify(result), outputs: [{ digest: evidence, bytes }], digests: [manifest] };
}
