/** Pure: what a release, a wave or a machine waits for, as lines for people. */
import type { Why } from "#kernel/read/query.ts";
import { viewWhy } from "#door/view.ts";
import { isNamed } from "#doors/deploy/agent/machine.ts";
import { pinOf, tellPin } from "#doors/deploy/goal/pins.ts";
import type { Seen } from "#doors/deploy/fleet/desk.ts";
import { isInShare } from "#doors/deploy/goal/membership.ts";
import { waveRegions } from "#doors/deploy/service/wave-regions.ts";
import { shownState } from "./machine-state.ts";
import {
  manifestOf,
  regionsOf,
  serviceNameOf,
  silentAfterOf,
  viewRelease,
  type Facts,
  type ShownRelease,
  type ShownWave,
} from "./release-view.ts";

export type TellFacts = Facts & {
  /** A freeze window, a time or another service that waves wait for. */
  readonly hold?: string | undefined;
  /** What the kernel says of work that has not ended. */
  readonly waits: readonly Why[];
};

const ended = new Set(["SUCCEEDED", "FAILED", "CANCELLED"]);

export function tellRelease(facts: TellFacts): readonly string[] {
  const shown = viewRelease(facts);
  const what = shown.sha === null ? `${shown.service} rollback` : `${shown.service} ${shown.sha.slice(0, 12)}`;
  const reason = shown.reason === "" ? "" : `: ${shown.reason}`;
  const head = `${shown.job}, ${what}, ${phaseWords[shown.phase]}${reason}`;
  if (ended.has(shown.phase)) return [head, ...tellEnded(shown)];
  const lock = facts.waits.find(({ because }) => because.kind === "lock");
  if (lock && shown.phase === "WAITING") return [head, `another release of ${shown.service}: ${viewWhy(lock.because)}`];
  return [head, ...holds(facts, shown), ...tellStages(facts, shown)];
}

const phaseWords: Readonly<Record<ShownRelease["phase"], string>> = {
  WAITING: "is queued",
  RUNNING: "is running",
  CANCELLING: "is being taken back",
  SUCCEEDED: "succeeded",
  FAILED: "failed",
  CANCELLED: "was cancelled",
};

function tellEnded({ stages }: ShownRelease): readonly string[] {
  const bad = stages.find(({ phase }) => phase === "FAILED");
  return bad ? [`${bad.name} failed: ${bad.why}`] : [];
}

/** What holds up the whole release. */
function holds({ hold }: TellFacts, { paused, regions }: ShownRelease): readonly string[] {
  return [
    ...(paused === null ? [] : [`paused by ${paused}: no further wave begins (millrace deploy pause --off)`]),
    ...(hold === undefined ? [] : [`${hold}: no wave begins meanwhile`]),
    ...regions.filter(({ halted }) => halted).map(({ region }) => `${region} is halted: nothing is activated there`),
  ];
}

function tellStages(facts: TellFacts, { stages }: ShownRelease): readonly string[] {
  const open = stages.filter(({ phase }) => phase === "READY" || phase === "RUNNING");
  return open.flatMap(({ name, why }) => {
    const wave = /^wave-(\d+)$/.exec(name)?.[1];
    return wave === undefined ? [`${name}: ${why}`] : tellWave(facts, Number(wave));
  });
}

/** `wave` counts from 1. */
export function tellWave(facts: TellFacts, wave: number): readonly string[] {
  const shown = viewRelease(facts).waves[wave - 1];
  if (!shown || facts.about.kind !== "release") return [];
  const approving = tellApprovals(shown, facts.about.release.service.waves[wave - 1]?.approvers);
  const line = `wave ${wave} (${shown.sharePpm / 10_000}%) ${shown.state}: ${approving ?? shown.why}`;
  if (shown.state !== "running") return [line];
  const behind = facts.census.behind
    .filter((one) => one.wave === wave - 1)
    .slice(0, listMax)
    .map((one) => `  ${one.line}`);
  const all = shown.regions.reduce((sum, { machines, running }) => sum + machines - running, 0);
  return [line, ...behind, ...(all > behind.length && behind.length > 0 ? [`  and ${all - behind.length} more`] : [])];
}

function tellApprovals({ approvals, state }: ShownWave, approvers: readonly string[] | undefined): string | undefined {
  const { needed, by } = approvals;
  const counted = by.filter((name) => approvers === undefined || approvers.includes(name));
  if (state !== "waiting" || counted.length >= needed) return undefined;
  const given = counted.length === 0 ? "none yet" : `from ${counted.join(", ")}`;
  const who = approvers === undefined ? "" : ` by ${approvers.join(", ")}`;
  return `it takes ${needed} approvals${who}, ${given}`;
}

const listMax = 10;

/** Undefined: the release is not about this machine. */
export function tellMachine(facts: TellFacts, seen: Seen): readonly string[] | undefined {
  const { jobId, about, goals } = facts;
  if (!isTarget(facts, seen)) return undefined;
  const { machine: name } = seen;
  const goal = goals.get(seen.region);
  const service = serviceNameOf(about);
  const silentAfterMs = silentAfterOf(about);
  const manifest = manifestOf(facts);
  const report = seen.reports.find((one) => one.service === service);
  const state = shownState(seen, { service, manifest, silentAfterMs });
  const heard = report ? `, heard ${Math.round(report.agoMs / 1_000)} s ago` : "";
  const lines = [`${name} (${seen.region}) ${state}${heard}${report?.why === undefined ? "" : `: ${report.why}`}`];
  if (!goal) return [...lines, `${seen.region} has no goal for ${service} yet`];
  const pin = pinOf(seen, goal.pins);
  if (pin) return [...lines, tellPin(pin)];
  if (goal.halted) lines.push(`${seen.region} is halted: nothing is activated`);
  if (goal.release !== jobId) lines.push(`the newest goal, version ${goal.version}, is of ${goal.release}`);
  else if (isNamed(name, goal)) lines.push(`goal version ${goal.version} names it`);
  else lines.push(`its turn comes with wave ${waveOfMachine(facts, seen) ?? "none"}; it stages meanwhile`);
  if (report && report.goalVersion < goal.version)
    lines.push(`it follows version ${report.goalVersion}; version ${goal.version} is the newest`);
  return lines;
}

function isTarget({ about, goals }: TellFacts, { region, labels }: Seen): boolean {
  const wanted =
    about.kind === "release" ? about.release.service.targets.labels : (goals.values().next().value?.labels ?? []);
  return regionsOf(about).includes(region) && wanted.every((label) => labels.includes(label));
}

function waveOfMachine({ about, census, jobId }: TellFacts, { machine, region }: Seen): number | undefined {
  if (about.kind !== "release") return undefined;
  const { service } = about.release;
  const index = service.waves.findIndex(
    ({ share }, wave) =>
      waveRegions(service, wave).includes(region) &&
      (isInShare(machine, jobId, share) || (share > 0 && census.firsts[wave]?.machine === machine)),
  );
  return index < 0 ? undefined : index + 1;
}
