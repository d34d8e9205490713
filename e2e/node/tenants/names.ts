/** For tests: the names of what a tenant has, and similar names of things that do not exist. */
import { randomBytes, randomUUID } from "node:crypto";
import { formatJob } from "#base/ids.ts";
import type { PlanSpec, StageSpec, TaskSet } from "#kernel/model/model.ts";
import { writeStage } from "#shard/work/model.ts";
import type { Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { SubmitRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { wireDigest } from "#e2e/node/build/execution-lab.ts";

export type Claimed = { readonly task: number; readonly token: number };
export const taskNames = ["start", "report", "commit", "fail", "release", "renew", "invalidate", "read"] as const;

/** Everything that a request can name. The existing ones belong to mill; the others look alike and do not exist. */
export type Names = {
  readonly tenant: string;
  readonly job: number;
  readonly jobId: string;
  readonly requestKey: string;
  readonly mergeKey: string;
  readonly subscriber: string;
  readonly tasks: Readonly<Record<(typeof taskNames)[number] | "plan", Claimed>>;
  /** Of a task that waits for a worker. */
  readonly label: string;
  readonly executor: string;
  readonly blob: Digest;
  readonly bytes: Buffer;
  readonly tree: Digest;
  readonly action: Digest;
  readonly uncached: Digest;
  readonly upload: string;
  readonly uploadRest: { readonly offset: number; readonly data: Buffer };
  readonly operation: string;
  readonly endedOperation: string;
  readonly stream: string;
  readonly build: string;
  readonly buildRequest: string;
  readonly operationsPage: string;
  readonly buildsPage: string;
  readonly uri: string;
  readonly key: string;
  readonly ac: string;
  readonly rule: string;
  readonly webhook: string;
  readonly pool: string;
  /** The name of a secret, and of a schedule. */
  readonly secret: string;
  readonly schedule: string;
};

export const template = (kind: string, label: string): TaskSet["template"] => ({
  kind,
  requires: [label],
  leaseMs: 600_000,
  attemptsMax: 3,
  retryOn: "infrastructure",
  backoffMs: 1,
  backoffMsMax: 1,
  queueMs: 600_000,
  attemptMs: 600_000,
  effects: "pure",
  speculate: false,
  graceMs: 0,
});

export const stageOf = (name: string, work: { tasks: TaskSet } | { plan: PlanSpec }): StageSpec => ({
  name,
  needs: [],
  after: "success",
  failFast: false,
  mayFail: true,
  parallelMax: 0,
  ...work,
});

export const submission = (tenant: string, stages: readonly StageSpec[], more: Partial<SubmitRequest> = {}) => ({
  shard: 0,
  tenant,
  door: "own",
  name: `${tenant}'s work`,
  payloadHash: "the same",
  priority: 0,
  spec: "",
  deadlineMs: 600_000,
  stages: stages.map(writeStage),
  reuse: [],
  joinOnly: false,
  notify: [],
  tracked: false,
  tags: [],
  ...more,
});

export const oneTask = (label: string): readonly StageSpec[] => [
  stageOf("only", { tasks: { template: template("own.work", label), tasks: [{ key: "1", spec: "" }] } }),
];

export const keyText = (): string => randomBytes(32).toString("hex");

/** An entry of this key in the caches that store raw bytes. */
export const cachePaths = (key: string): readonly string[] => [
  `/ccache/${key}`,
  `/sccache/a/b/c/${key}`,
  `/gradle/${key}`,
  `/v8/artifacts/${key}?slug=team`,
  `/v1/cache/${key}`,
];

/** As many names, none of which exists. */
export function absentNames(real: Names): Names {
  const text = (): string => randomUUID();
  const nowhere = ({ sizeBytes }: Digest): Digest => ({ hash: keyText(), sizeBytes });
  const tasks = Object.entries(real.tasks).map(([name, { token }], i) => [name, { task: 900_000 + i, token }] as const);
  const job = 800_000;
  const bytes = randomBytes(real.bytes.length);
  const rest = randomBytes(real.uploadRest.data.length + real.uploadRest.offset);
  const { hash, sizeBytes } = wireDigest(rest);
  const elsewhere = (name: string): string => name.replace(/j\d+-\d+/, formatJob(0, 800_001));
  return {
    tenant: "nowhere",
    job,
    jobId: formatJob(0, job),
    requestKey: text(),
    mergeKey: text(),
    subscriber: text(),
    tasks: Object.fromEntries(tasks) as unknown as Names["tasks"],
    label: `own=${text()}`,
    executor: text(),
    blob: wireDigest(bytes),
    bytes,
    tree: nowhere(real.tree),
    action: nowhere(real.action),
    uncached: nowhere(real.uncached),
    upload: `uploads/${text()}/blobs/${hash}/${sizeBytes}`,
    uploadRest: { offset: real.uploadRest.offset, data: rest.subarray(real.uploadRest.offset) },
    operation: elsewhere(real.operation),
    endedOperation: real.endedOperation.replace(/j\d+-\d+/, formatJob(0, 800_002)),
    stream: elsewhere(real.stream),
    build: formatJob(0, 800_003),
    buildRequest: text(),
    operationsPage: "",
    buildsPage: "",
    uri: `https://files.example/${text()}`,
    key: keyText(),
    ac: keyText(),
    rule: text(),
    secret: text(),
    schedule: text(),
    webhook: text(),
    pool: text(),
  };
}
