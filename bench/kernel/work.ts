/** Jobs and executors as a door and a fleet would have them, doing no work of their own. */
import type { Digest } from "#base/digest.ts";
import type { CommandOf, Submit } from "#kernel/model/command.ts";
import type { Grant, StageSpec, TaskPlan, TaskTemplate } from "#kernel/model/model.ts";
import type { Asker } from "./asker.ts";

const hour = 3_600_000;

const template: TaskTemplate = {
  kind: "bench.task",
  requires: ["os=linux", "pool=default"],
  leaseMs: 60_000,
  attemptsMax: 3,
  retryOn: "infrastructure",
  backoffMs: 1_000,
  backoffMsMax: 60_000,
  queueMs: 24 * hour,
  attemptMs: hour,
  effects: "pure",
  speculate: false,
  graceMs: 10_000,
};

export const offers = ["arch=x64", "os=linux", "pool=default"];

export type JobOptions = {
  readonly tenant?: string;
  /** Binds the job to a request key, so that submitting it again is no second job. None of the peers does so. */
  readonly keyed?: boolean;
};

/** One job of one stage with so many tasks. */
export function jobOf(id: string, tasks: number, { tenant = "tenant-a", keyed = false }: JobOptions = {}): Submit {
  const plans: TaskPlan[] = [];
  for (let i = 0; i < tasks; i += 1) plans.push({ key: `t${i}`, spec: `${id}:${i}` });
  const stage: StageSpec = {
    name: "run",
    needs: [],
    after: "success",
    failFast: false,
    mayFail: false,
    parallelMax: 0,
    tasks: { template, tasks: plans },
  };
  const job: Submit = {
    kind: "submit",
    tenant,
    door: "bench",
    name: id,
    payloadHash: id,
    priority: 0,
    spec: id,
    stages: [stage],
    deadlineMs: 24 * hour,
  };
  return keyed ? { ...job, requestKey: id } : job;
}

/** Numbers for everything that has to be new: jobs, reservations, blobs. */
let lastNo = 0;
export const nextNo = (): number => (lastNo += 1);

export const submitJob = (rig: Asker, shard: number, tasks: number, options?: JobOptions) =>
  rig.ask<"submit">(shard, jobOf(`job-${nextNo()}`, tasks, options));

export type Reserving = {
  readonly executor: string;
  readonly count: number;
  readonly waitMs?: number;
  readonly tenant?: string;
};

export async function reserveTasks(rig: Asker, shard: number, wanted: Reserving): Promise<readonly Grant[]> {
  const { executor, count, waitMs = 0 } = wanted;
  const nonce = `n${nextNo()}`;
  const reserve = { kind: "reserve", executor, offers, prefer: [], count, start: true, nonce } as const;
  return (await rig.ask<"reserve">(shard, reserve, waitMs)).grants;
}

/** How an executor brings back what it was granted: all that it has in one request, or each by itself. */
export type Bringing = "together" | "one by one";

const noEvidence = { digests: [], pinnedForMs: 0 };

/** Three digests a result: the bytes are in the store, and are pinned by the node before the kernel hears of them. */
export async function commitTasks(
  rig: Asker,
  shard: number,
  executor: string,
  grants: readonly Grant[],
  bringing: Bringing = "together",
): Promise<void> {
  if (grants.length === 0) return;
  const commands = grants.map(({ task, token }): CommandOf<"commit"> => {
    const result = { payload: "0 exit", digests: threeOf(rig.digests, task) };
    return { kind: "commit", executor, task, token, result, evidence: noEvidence };
  });
  const replies =
    bringing === "together"
      ? await rig.askMany<"commit">(shard, commands)
      : await Promise.all(commands.map((command) => rig.ask<"commit">(shard, command)));
  for (const { committed } of replies) if (!committed) throw new Error("a task was not committed");
}

function threeOf(digests: readonly Digest[], task: number): readonly Digest[] {
  const at = (task * 3) % (digests.length - 2);
  return digests.slice(at, at + 3);
}
