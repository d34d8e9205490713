/**
 * Pure: a release becomes a job of stages, and each stage's inputs become its task.
 *
 * The build is a job of its own, which releases of the same commit share; the stage `build` waits for it and signs.
 *
 *   build ─► wave-1 ─► wave-2 ─► … ─► finish (runs however the waves ended: keeps the new version, or rolls back)
 */
import { createHash } from "node:crypto";
import type { Plan, PlanSpec, StageSpec, TaskTemplate } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Order } from "#shard/client/client.ts";
import type { Manifest } from "./manifest/manifest.ts";
import type { ServiceFile } from "./service/service-file.ts";
import { specWithService } from "./service/stored.ts";

export const door = "deploy";
/** Nodes that run this door's tasks and plan its stages offer these. */
export const taskLabel = "door=deploy";
export const planLabel = "plan=deploy/1";

export const kinds = {
  build: "deploy.build",
  seal: "deploy.seal",
  planBuild: "deploy.plan-build",
  wave: "deploy.wave",
  finish: "deploy.finish",
  rollback: "deploy.rollback",
  planWave: "deploy.plan-wave",
  planFinish: "deploy.plan-finish",
} as const;

/** What a release job is about; the job's spec. */
export type Release = {
  readonly service: ServiceFile;
  readonly sha: string;
  /** A path or URL that git can clone. */
  readonly repository: string;
};

/** The spec of a build that was planned as a stage of its release, before releases shared builds. */
export type BuildOfRelease = Release;

/** All that decides what a build makes. */
export type BuildSpec = Pick<Release, "sha" | "repository"> & { readonly build: ServiceFile["build"] };

/** What a build made, before it is a release of a service. */
export type Packed = Pick<Manifest, "files" | "links" | "units" | "builder">;

export type SealSpec = { readonly service: ServiceFile; readonly sha: string; readonly packed: string };
export type BuildResult = { readonly manifest: string; readonly sizeBytes: number };

export type WaveSpec = {
  readonly service: ServiceFile;
  readonly wave: number;
  readonly manifest: string;
  /** The evidence on which the wave before was found healthy; null for the first. */
  readonly evidence: string | null;
};
export type WaveResult = { readonly manifest: string; readonly evidence: string; readonly why: string };

export type FinishSpec = { readonly service: string; readonly regions: readonly string[] } & (
  | { readonly outcome: "kept"; readonly manifest: string }
  | { readonly outcome: "failed"; readonly rollback: ServiceFile["rollback"]; readonly why: string }
);

export type RollbackSpec = { readonly service: string; readonly regions: readonly string[] };

/** The tag of a release's job that names its commit. */
export const shaTag = "commit";

const second = 1_000;
const hour = 3_600_000;

export function planRelease(release: Release, request: { readonly tenant: string; readonly key?: string }): Order {
  const { service, sha } = release;
  const spec = JSON.stringify(release);
  const waves = service.waves.map((_, index): StageSpec => ({
    ...plain(`wave-${index + 1}`, [index]),
    plan: planSpec(kinds.planWave, service.deadline),
  }));
  const build: StageSpec = {
    ...plain("build", []),
    plan: planSpec(kinds.planBuild, buildMs(service.build) + hour),
  };
  const finish: StageSpec = {
    ...plain("finish", [0, ...waves.map((_, index) => index + 1)]),
    after: "end",
    plan: planSpec(kinds.planFinish, hour),
  };
  return {
    ...order(`service ${service.service}`, `${service.service} ${sha.slice(0, 12)}`, spec, request),
    tags: [{ name: shaTag, value: sha }],
    // A release may take its deadline for the waves and as long again for the build and the way back.
    deadlineMs: 2 * service.deadline + hour,
    stages: [build, ...waves, finish],
    lock: {
      name: `service ${service.service}`,
      limit: 1,
      queueMax: 100,
      cancelInProgress: service.concurrent === "supersede",
    },
  };
}

/** Two releases with the same key can share a build. */
export const buildKey = ({ sha, repository, build }: BuildSpec): string =>
  createHash("sha256")
    .update(JSON.stringify([repository, sha, build?.run ?? null, build?.output ?? "."]))
    .digest("hex");

export const buildOf = ({ sha, repository, service: { build } }: Release): BuildSpec => ({ sha, repository, build });

const buildMs = (build: ServiceFile["build"]): number => build?.timeout ?? hour;

export function planBuild(release: Release, tenant: string): Order {
  const about = buildOf(release);
  const { build, sha } = about;
  const spec = JSON.stringify(about);
  const key = buildKey(about);
  return {
    ...order(`build ${key}`, `build ${sha.slice(0, 12)}`, spec, { tenant }),
    mergeKey: key,
    tags: [{ name: shaTag, value: sha }],
    deadlineMs: buildMs(build) + hour,
    stages: [
      {
        ...plain("build", []),
        tasks: {
          template: template(kinds.build, { attemptMs: buildMs(build), effects: "pure" }),
          tasks: [{ key: "build", spec }],
        },
      },
    ],
  };
}

export function planSeal({ service, sha }: Release, packed: string): Plan {
  const spec: SealSpec = { service, sha, packed };
  return one(kinds.seal, { attemptMs: hour, effects: "pure" }, "seal", spec);
}

export function planRollback(request: RollbackSpec & { readonly tenant: string; readonly key?: string }): Order {
  const { service, regions } = request;
  const spec = JSON.stringify({ service, regions } satisfies RollbackSpec);
  return {
    ...order(`service ${service}`, `${service} rollback`, spec, request),
    deadlineMs: hour,
    stages: [
      {
        ...plain("rollback", []),
        tasks: {
          template: template(kinds.rollback, { attemptMs: 30 * 60 * second, effects: "outside" }),
          tasks: [{ key: "rollback", spec }],
        },
      },
    ],
  };
}

/** A wave begins when what it needs ended well and enough people have approved. */
export function planWave({ spec, stage, results, signals }: PlanInputs): Plan {
  const { service } = specWithService<Release>(spec);
  const wave = Number(stage.slice("wave-".length)) - 1;
  const given = service.waves[wave];
  const payload = results.find(({ phase }) => phase === "SUCCEEDED")?.result?.payload;
  if (!given || payload === undefined) return { kind: "fail", reason: `there is nothing to roll out in ${stage}` };
  const { approvers } = given;
  const counted = signals.filter(({ payload: by }) => approvers === undefined || approvers.includes(by));
  const refusal = counted.find(({ name }) => name === "reject");
  if (refusal) return { kind: "fail", reason: `rejected by ${refusal.payload}` };
  const approvals = new Set(counted.filter(({ name }) => name === "approve").map((signal) => signal.payload));
  if (approvals.size < given.approve) return { kind: "wait", forMs: hour, signals: ["approve", "reject"] };
  const before = JSON.parse(payload) as BuildResult | WaveResult;
  const next: WaveSpec = {
    service,
    wave,
    manifest: before.manifest,
    evidence: "evidence" in before ? before.evidence : null,
  };
  return one(kinds.wave, { attemptMs: service.deadline, effects: "outside" }, stage, next);
}

export function planFinish({ spec, needs, results }: PlanInputs): Plan {
  const { service } = specWithService<Release>(spec);
  const common = { service: service.service, regions: service.targets.regions };
  const bad = needs.find(({ phase }) => phase !== "COMPLETED");
  const manifest = results
    .map(({ result }) => (result ? (JSON.parse(result.payload) as Partial<WaveResult>).manifest : undefined))
    .findLast((each) => each !== undefined);
  const task: FinishSpec =
    bad || manifest === undefined
      ? {
          ...common,
          outcome: "failed",
          rollback: service.rollback,
          why: `${bad?.name ?? "build"} ended ${bad?.phase ?? ""}`,
        }
      : { ...common, outcome: "kept", manifest };
  return one(kinds.finish, { attemptMs: 30 * 60 * second, effects: "outside" }, "finish", task);
}

const order = (
  about: string,
  name: string,
  spec: string,
  { tenant, key }: { readonly tenant: string; readonly key?: string },
) => ({
  // Everything about a service is decided in one shard: its lock, its request keys.
  shardKey: `${tenant}/${about}`,
  tenant,
  door,
  name,
  payloadHash: createHash("sha256").update(spec).digest("hex"),
  priority: 0,
  spec,
  // People look at releases while they run, in SQL as well.
  tracked: true,
  ...(key !== undefined && { requestKey: key }),
});

const plain = (name: string, needs: readonly number[]) =>
  ({ name, needs, after: "success", failFast: true, mayFail: false, parallelMax: 0 }) as const;

const planSpec = (kind: string, deadlineMs: number): PlanSpec => ({
  kind,
  requires: [planLabel],
  leaseMs: 10 * second,
  attemptsMax: 20,
  deadlineMs,
});

type Limits = Pick<TaskTemplate, "attemptMs" | "effects">;

const one = (kind: string, limits: Limits, key: string, spec: unknown): Plan => ({
  kind: "tasks",
  set: { template: template(kind, limits), tasks: [{ key, spec: JSON.stringify(spec) }] },
});

const template = (kind: string, { attemptMs, effects }: Limits): TaskTemplate => ({
  kind,
  requires: [taskLabel],
  leaseMs: 10 * second,
  attemptsMax: 10,
  retryOn: "infrastructure",
  backoffMs: second,
  backoffMsMax: 30 * second,
  queueMs: hour,
  attemptMs,
  effects,
  speculate: false,
  graceMs: effects === "outside" ? 0 : 60 * second,
});
