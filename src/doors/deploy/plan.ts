/**
 * Pure: a release becomes a job of stages, and each stage's inputs become its task.
 *
 * The build is a job of its own, which releases of the same commit share; the stage `build` waits for it and signs.
 *
 *   build ─► replicate ─► wave-1 ─► wave-2 ─► … ─► finish
 *
 * The last runs however the waves ended: it keeps the new version, or rolls back.
 */
import { createHash } from "node:crypto";
import type { Plan, PlanSpec, StageSpec, TaskTemplate } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Order } from "#shard/client/client.ts";
import type { Manifest } from "./manifest/manifest.ts";
import type { ServiceFile } from "./service/service-file.ts";
import type { Signed } from "./signing/signing.ts";
import { specWithService } from "./service/stored.ts";

export const door = "deploy";
/** Nodes that run this door's tasks and plan its stages offer these. */
export const taskLabel = "door=deploy";
export const planLabel = "plan=deploy/1";
/** Nodes that know the stage that replicates. */
export const replicateLabel = "plan=deploy/2";
export const nodeLabels = [taskLabel, planLabel, replicateLabel] as const;

export const kinds = {
  build: "deploy.build",
  seal: "deploy.seal",
  planBuild: "deploy.plan-build",
  planWorkflow: "deploy.plan-workflow",
  unpack: "deploy.unpack",
  replicate: "deploy.replicate",
  planReplicate: "deploy.plan-replicate",
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
  /** No wave begins before this time. */
  readonly notBeforeMs?: number | undefined;
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
  /** Signed; with the evidence. */
  readonly certificate?: Signed | undefined;
};
export type WaveResult = {
  readonly manifest: string;
  readonly evidence: string;
  readonly certificate?: Signed;
  readonly why: string;
};

export type FinishSpec = { readonly service: string; readonly regions: readonly string[] } & (
  | { readonly outcome: "kept"; readonly manifest: string }
  | { readonly outcome: "failed"; readonly rollback: ServiceFile["rollback"]; readonly why: string }
);

export type RollbackSpec = { readonly service: string; readonly regions: readonly string[] };

/** The tag of a release's job that names its commit. */
export const shaTag = "commit";

const second = 1_000;
const hour = 3_600_000;

export type ReleaseRequest = {
  readonly tenant: string;
  readonly key?: string;
  /** How long from now the release's own "not before" time is away. */
  readonly heldMs?: number;
};

export function planRelease(release: Release, request: ReleaseRequest): Order {
  const { service, sha } = release;
  const { heldMs = 0 } = request;
  const spec = JSON.stringify(release);
  const replicate: StageSpec = {
    ...plain("replicate", [0]),
    plan: { ...planSpec(kinds.planReplicate, hour), requires: [replicateLabel] },
  };
  const waves = service.waves.map((_, index): StageSpec => ({
    // The first wave needs the build's manifest, too.
    ...plain(`wave-${index + 1}`, index === 0 ? [0, 1] : [index + 1]),
    plan: planSpec(kinds.planWave, service.deadline + (index === 0 ? heldMs : 0)),
  }));
  const build: StageSpec = {
    ...plain("build", []),
    plan: planSpec(kinds.planBuild, buildMs(service.build) + hour),
  };
  const finish: StageSpec = {
    ...plain("finish", [0, 1, ...waves.map((_, index) => index + 2)]),
    after: "end",
    plan: planSpec(kinds.planFinish, hour),
  };
  return {
    ...order(`service ${service.service}`, `${service.service} ${sha.slice(0, 12)}`, spec, request),
    tags: [{ name: shaTag, value: sha }],
    // A release may take its deadline for the waves and as long again for the build and the way back.
    deadlineMs: 2 * service.deadline + hour + heldMs,
    stages: [build, replicate, ...waves, finish],
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
    .update(JSON.stringify(buildWords({ sha, repository, build })))
    .digest("hex");

/** What a build by a workflow makes depends on CI's repository, not on where the release's file came from. */
const buildWords = ({ sha, repository, build }: BuildSpec): readonly unknown[] =>
  build && "workflow" in build
    ? ["workflow", build.repository, sha, build.workflow, build.artifact, build.output, build.inputs]
    : [repository, sha, build?.run ?? null, outputOf(build)];

/** Releases of earlier versions have none where there is nothing to run. */
export const outputOf = (build: ServiceFile["build"]): string => build?.output ?? ".";

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
      build && "workflow" in build
        ? {
            ...plain("build", []),
            plan: { ...planSpec(kinds.planWorkflow, buildMs(build)), requires: [replicateLabel] },
          }
        : {
            ...plain("build", []),
            tasks: {
              template: template(kinds.build, { attemptMs: buildMs(build), effects: "pure" }),
              tasks: [{ key: "build", spec }],
            },
          },
    ],
  };
}

export type UnpackSpec = {
  readonly run: string;
  readonly artifact: string;
  readonly output: string;
  readonly of: BuildSpec;
};

/** Packs the artifact that a run of CI left. */
export function planUnpack(of: BuildSpec, run: string): Plan {
  if (!of.build || !("workflow" in of.build)) return { kind: "fail", reason: "the build names no workflow" };
  const { artifact, output } = of.build;
  const spec: UnpackSpec = { run, artifact, output, of };
  return one(kinds.unpack, { attemptMs: hour, effects: "pure" }, "unpack", spec);
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

export type ReplicateSpec = { readonly manifest: string; readonly regions: readonly string[] };
export type ReplicateResult = {
  readonly regions: readonly string[];
  readonly segments: number;
  readonly bytes: number;
};

/**
 * One task for each region with nodes of its own, which has them fetch every segment; regions without share one task,
 * which verifies the common store. `served` are the regions that have nodes.
 */
export function planReplicate({ spec, results }: PlanInputs, served: ReadonlySet<string>): Plan {
  const { service } = specWithService<Release>(spec);
  const manifest = manifestIn(results);
  if (manifest === undefined) return { kind: "fail", reason: "there is nothing to replicate: the build left nothing" };
  const { regions } = service.targets;
  const apart = regions.filter((region) => !served.has(region));
  const groups = [
    ...regions.filter((region) => served.has(region)).map((one) => [one]),
    ...(apart.length > 0 ? [apart] : []),
  ];
  const limits = { attemptMs: hour, effects: "pure" } as const;
  const sets = groups.map((group) => {
    const own = group[0] !== undefined && served.has(group[0]) ? [`region=${group[0]}`] : [];
    const taskTemplate = template(kinds.replicate, limits);
    return {
      template: { ...taskTemplate, requires: [...taskTemplate.requires, replicateLabel, ...own] },
      tasks: [{ key: group.join(","), spec: JSON.stringify({ manifest, regions: group } satisfies ReplicateSpec) }],
    };
  });
  return { kind: "tasks", sets };
}

/** The manifest that a stage before this one made or rolled out. */
const manifestIn = (results: PlanInputs["results"]): string | undefined =>
  results
    .map(({ result }) => (result ? (JSON.parse(result.payload) as Partial<WaveResult>).manifest : undefined))
    .findLast((each) => each !== undefined);

/** A wave begins when what it needs ended well and enough people have approved. */
export function planWave({ spec, stage, results, signals }: PlanInputs): Plan {
  const { service } = specWithService<Release>(spec);
  const wave = Number(stage.slice("wave-".length)) - 1;
  const given = service.waves[wave];
  const payload = results
    .map((one) => (one.phase === "SUCCEEDED" ? one.result?.payload : undefined))
    .find((text) => text !== undefined && "manifest" in (JSON.parse(text) as object));
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
    ...("evidence" in before && before.certificate && { certificate: before.certificate }),
  };
  return one(kinds.wave, { attemptMs: service.deadline, effects: "outside" }, stage, next);
}

export function planFinish({ spec, needs, results }: PlanInputs): Plan {
  const { service } = specWithService<Release>(spec);
  const common = { service: service.service, regions: service.targets.regions };
  const bad = needs.find(({ phase }) => phase !== "COMPLETED");
  const manifest = manifestIn(results);
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
