/** Pure: what a release, a wave or a machine waits for, as lines for people. */
import type { Why } from "#kernel/read/query.ts";
import { viewWhy } from "#door/view.ts";
import { isNamed } from "#doors/deploy/agent/machine.ts";
import { pinOf, tellPin } from "#doors/deploy/goal/pins.ts";
import { membersOf } from "#doors/deploy/goal/membership.ts";
import { waveRegions } from "#doors/deploy/service/wave-regions.ts";
import { shownState } from "./machine-state.ts";
import { manifestOf, runs, viewRelease, type Facts, type ShownRelease, type ShownWave } from "./release-view.ts";

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
  const behind = laggards(facts, wave);
  const more = behind.length > listMax ? [`  and ${behind.length - listMax} more`] : [];
  return [line, ...behind.slice(0, listMax), ...more];
}

const listMax = 10;

function tellApprovals({ approvals, state }: ShownWave, approvers: readonly string[] | undefined): string | undefined {
  const { needed, by } = approvals;
  const counted = by.filter((name) => approvers === undefined || approvers.includes(name));
  if (state !== "waiting" || counted.length >= needed) return undefined;
  const given = counted.length === 0 ? "none yet" : `from ${counted.join(", ")}`;
  const who = approvers === undefined ? "" : ` by ${approvers.join(", ")}`;
  return `it takes ${needed} approvals${who}, ${given}`;
}

/** The machines of the wave that do not run the new version. */
function laggards(facts: TellFacts, wave: number): readonly string[] {
  if (facts.about.kind !== "release") return [];
  const { service } = facts.about.release;
  const manifest = manifestOf(facts);
  const regions = waveRegions(service, wave - 1);
  const mine = facts.machines.filter(({ region }) => regions.includes(region));
  const names = mine.map(({ machine }) => machine);
  const members = new Set(membersOf(names, facts.jobId, service.waves[wave - 1]?.share ?? 0));
  const wanted = { service: service.service, manifest, silentAfterMs: service.health.silentAfter };
  return mine
    .filter((seen) => members.has(seen.machine) && !runs(seen, service.service, manifest))
    .map((seen) => {
      const said = seen.reports.find((report) => report.service === service.service)?.why;
      return `  ${seen.machine} (${seen.region}) ${shownState(seen, wanted)}${said === undefined ? "" : `: ${said}`}`;
    });
}

/** Undefined: no machine of that name is known. */
export function tellMachine(facts: TellFacts, name: string): readonly string[] | undefined {
  const seen = facts.machines.find(({ machine }) => machine === name);
  if (!seen) return undefined;
  const { jobId, about, goals } = facts;
  const goal = goals.get(seen.region);
  const service = about.kind === "release" ? about.release.service.service : about.rollback.service;
  const silentAfterMs = about.kind === "release" ? about.release.service.health.silentAfter : 30_000;
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
  else lines.push(`its turn comes with wave ${waveOfMachine(facts, name) ?? "none"}; it stages meanwhile`);
  if (report && report.goalVersion < goal.version)
    lines.push(`it follows version ${report.goalVersion}; version ${goal.version} is the newest`);
  return lines;
}

function waveOfMachine({ about, machines, jobId }: TellFacts, name: string): number | undefined {
  if (about.kind !== "release") return undefined;
  const { service } = about.release;
  const index = service.waves.findIndex(({ share }, wave) => {
    const regions = waveRegions(service, wave);
    const names = machines.filter(({ region }) => regions.includes(region)).map(({ machine }) => machine);
    return membersOf(names, jobId, share).includes(name);
  });
  return index < 0 ? undefined : index + 1;
}
