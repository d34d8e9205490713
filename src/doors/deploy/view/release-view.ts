/** Pure: what is known about a release becomes one picture: its stages, its waves, and its machines by region. */
import type { JobView, StageView } from "#kernel/read/query.ts";
import { keys as counted, type Census } from "#doors/deploy/fleet/census.ts";
import type { Pause } from "#doors/deploy/fleet/controls.ts";
import type { Goal } from "#doors/deploy/goal/goal.ts";
import type { BuildResult, Release, RollbackSpec, WaveResult } from "#doors/deploy/plan.ts";
import { waveRegions } from "#doors/deploy/service/wave-regions.ts";
import { countStates, type StateCounts } from "./machine-state.ts";

export type Facts = {
  readonly jobId: string;
  readonly view: JobView;
  readonly about: About;
  /** The machines that the service targets, as counts. */
  readonly census: Census;
  /** The newest goal of each region that has one. */
  readonly goals: ReadonlyMap<string, Goal>;
  readonly paused: Pause | undefined;
};

/** What the job is: one of these two have goals of their own. */
export type About =
  | { readonly kind: "release"; readonly release: Release }
  | { readonly kind: "rollback"; readonly rollback: RollbackSpec };

export type ShownWave = {
  readonly wave: number;
  readonly sharePpm: number;
  readonly bakeMs: number;
  readonly state: "waiting" | "running" | "passed" | "failed" | "skipped";
  readonly approvals: { readonly needed: number; readonly by: readonly string[] };
  /** What it waits for, or how it ended. */
  readonly why: string;
  readonly regions: readonly { readonly region: string; readonly machines: number; readonly running: number }[];
};

export type ShownRegion = {
  readonly region: string;
  /** Zero: there is no goal yet. */
  readonly version: number;
  readonly halted: boolean;
  /** Whether the newest goal is this release's. */
  readonly isGoal: boolean;
  /** How many waves of this release the region's goal includes. */
  readonly wave: number;
  readonly machines: number;
  readonly states: StateCounts;
};

export type ShownRelease = {
  readonly job: string;
  readonly kind: About["kind"];
  readonly service: string;
  readonly sha: string | null;
  readonly phase: JobView["phase"];
  readonly reason: string;
  readonly createdAt: string;
  readonly endedAt: string | null;
  readonly manifest: string | null;
  readonly paused: string | null;
  readonly stages: readonly { readonly name: string; readonly phase: string; readonly why: string }[];
  readonly waves: readonly ShownWave[];
  readonly regions: readonly ShownRegion[];
};

export function viewRelease(facts: Facts): ShownRelease {
  const { jobId, view, about, paused } = facts;
  const isRelease = about.kind === "release";
  const manifest = manifestOf(facts);
  return {
    job: jobId,
    kind: about.kind,
    service: serviceNameOf(about),
    sha: isRelease ? about.release.sha : null,
    phase: view.phase,
    reason: view.reason,
    createdAt: new Date(view.submittedAtMs).toISOString(),
    endedAt: view.endedAtMs === undefined ? null : new Date(view.endedAtMs).toISOString(),
    manifest,
    paused: paused?.by ?? null,
    stages: view.stages.map((stage) => ({ name: stage.name, phase: stage.phase, why: whyOfStage(view, stage) })),
    waves: isRelease ? about.release.service.waves.map((_, index) => waveOf(facts, about.release, index)) : [],
    regions: regionsOf(about).map((region) => regionOf(facts, region)),
  };
}

export const serviceNameOf = (about: About): string =>
  about.kind === "release" ? about.release.service.service : about.rollback.service;

export const regionsOf = (about: About): readonly string[] =>
  about.kind === "release" ? about.release.service.targets.regions : about.rollback.regions;

export const waveStage = (view: JobView, index: number): StageView | undefined =>
  view.stages.find(({ name }) => name === `wave-${index + 1}`);

/** The manifest that the release rolls out, once it was built; of a rollback, the one that it went back to. */
export function manifestOf({ jobId, view, about, goals }: Omit<Facts, "census" | "paused">): string | null {
  const ofGoal = [...goals.values()].find(({ release }) => release === jobId)?.manifest;
  if (ofGoal !== undefined || about.kind === "rollback") return ofGoal ?? null;
  const built = view.stages.findIndex(({ name }) => name === "build");
  const payload = view.tasks.find(({ stage, result }) => stage === built && result !== undefined)?.result?.payload;
  return payload === undefined ? null : ((JSON.parse(payload) as Partial<BuildResult>).manifest ?? null);
}

function waveOf(facts: Facts, { service }: Release, index: number): ShownWave {
  const wave = service.waves[index];
  const stage = waveStage(facts.view, index);
  const regions = waveRegions(service, index);
  const signals = stage?.signals?.filter(({ name }) => name === "approve") ?? [];
  return {
    wave: index + 1,
    sharePpm: wave?.share ?? 0,
    bakeMs: wave?.bake ?? 0,
    state: stateOf(stage),
    approvals: { needed: wave?.approve ?? 0, by: [...new Set(signals.map(({ payload }) => payload))] },
    why: stage ? whyOfStage(facts.view, stage) : "",
    regions: regions.map((region) => ({
      region,
      machines: facts.census.of(counted.member(index, region)),
      running: facts.census.of(counted.memberRunning(index, region)),
    })),
  };
}

function regionOf({ jobId, census, goals }: Facts, region: string): ShownRegion {
  const goal = goals.get(region);
  const isGoal = goal?.release === jobId;
  return {
    region,
    version: goal?.version ?? 0,
    halted: goal?.halted ?? false,
    isGoal,
    wave: isGoal && goal.kind === "release" ? goal.wave + 1 : 0,
    machines: census.of(counted.machines(region)),
    states: countStates((state) => census.of(counted.state(region, state))),
  };
}

/** A rollback by hand names no service file. */
const silentMsUsual = 30_000;
export const silentAfterOf = (about: About): number =>
  about.kind === "release" ? about.release.service.health.silentAfter : silentMsUsual;

function stateOf(stage: StageView | undefined): ShownWave["state"] {
  switch (stage?.phase) {
    case "COMPLETED":
      return "passed";
    case "FAILED":
      return "failed";
    case "SKIPPED":
    case "CANCELLED":
      return "skipped";
    default:
      return (stage?.running ?? 0) > 0 ? "running" : "waiting";
  }
}

/** What the stage's task said last, or how it ended. */
export function whyOfStage(view: JobView, stage: StageView): string {
  const tasks = view.tasks.filter((task) => task.stage === stage.stage && !task.planning);
  if (stage.phase === "COMPLETED") {
    const payload = tasks.find(({ result }) => result !== undefined)?.result?.payload;
    return payload === undefined ? "" : ((JSON.parse(payload) as Partial<WaveResult>).why ?? "");
  }
  if (stage.phase === "BLOCKED") return `waits for ${needsOf(view, stage).join(", ")}`;
  if (stage.waitsForSignals.includes("approve")) return "waits for approval";
  if (stage.waitsForSignals.includes("ended:build")) return `waits for the build${buildJobOf(stage)}`;
  const failure = tasks.find(({ lastFailure }) => lastFailure !== undefined)?.lastFailure;
  if (stage.phase === "FAILED") return firstLine(failure?.message ?? stage.reason);
  if (stage.phase === "SKIPPED" || stage.phase === "CANCELLED") return firstLine(stage.reason);
  const said = tasks.flatMap(({ steps }) => steps).at(-1)?.name;
  return said ?? (tasks.length > 0 ? "waits for a node that runs it" : "is being planned");
}

const needsOf = (view: JobView, stage: StageView): readonly string[] =>
  stage.needs.flatMap((need) => {
    const needed = view.stages[need];
    return needed && needed.phase !== "COMPLETED" ? [needed.name] : [];
  });

function buildJobOf({ signals }: StageView): string {
  const joined = signals?.find(({ name }) => name === "joined")?.payload;
  return joined === undefined ? "" : `, ${joined}`;
}

const firstLine = (text: string): string => text.split("\n", 1)[0]?.slice(0, 500) ?? "";
