/** What must have happened when everything has healed and had time to finish: K9 and K10. */
import type { Checker } from "./court.ts";
import { isOver, liveClaims, type ModelClaim, type ModelJob, type ShardModel } from "#sim/model/model.ts";

export const jobsEnd: Checker = {
  invariant: "K9",
  promise: "every job ends when faults stop and there are capable executors",
  end(court) {
    for (const model of court.models)
      for (const job of model.jobs.values())
        if (!isOver(job.phase)) return `shard ${model.shard} job ${job.no} is ${job.phase}: ${standing(job)}`;
    return undefined;
  },
};

const standing = (job: ModelJob): string =>
  job.stages
    .map(({ spec, phase, tasks, planning, lock }) => {
      const each = [...(planning ? [planning] : []), ...tasks];
      return `${spec.name} ${phase} lock ${lock} [${each.map((task) => `${task.no} ${task.standing}`).join(", ")}]`;
    })
    .join("; ");

/**
 * A tenant that is overtaken this often while it has ready work, quota and suitable executors, and holds no claim, is
 * starved. A tenant that holds claims may be overtaken by others that hold fewer.
 */
const overtakenMax = 150;

export const tenantsServed: Checker = {
  invariant: "K10",
  promise: "no tenant with ready work and free quota is passed over for ever",
  event(court, { model }, event) {
    if (event.kind !== "claimed") return undefined;
    const task = model.tasks.get(event.task);
    if (!task) return undefined;
    const ready = readyTenants(model, court.offers.get(event.executor) ?? []);
    court.overtaken.set(`${model.shard}/${task.job.tenant}`, 0);
    for (const tenant of ready) {
      if (tenant === task.job.tenant) continue;
      const name = `${model.shard}/${tenant}`;
      const times = (court.overtaken.get(name) ?? 0) + 1;
      court.overtaken.set(name, times);
      if (times > overtakenMax) return `${tenant} was overtaken ${times} times in shard ${model.shard}`;
    }
    return undefined;
  },
};

function readyTenants(model: ShardModel, offers: readonly string[]): ReadonlySet<string> {
  const tenants = new Set<string>();
  const holding = new Set<string>();
  for (const task of model.tasks.values()) if (liveClaims(task).length > 0) holding.add(task.job.tenant);
  for (const { job, standing: where, template } of model.tasks.values()) {
    if (where !== "ready" || tenants.has(job.tenant) || holding.has(job.tenant)) continue;
    if (!template.requires.every((label) => offers.includes(label))) continue;
    // With a quota, the free slots here depend on what the home shard lends.
    if ((model.tenants.get(job.tenant)?.runningMax ?? 0) === 0) tenants.add(job.tenant);
  }
  return tenants;
}

export const quotaKept: Checker = {
  invariant: "quota",
  promise: "a tenant never has more claims than its quota, over all shards",
  event(court, { model }, event) {
    if (event.kind !== "claimed") return undefined;
    const tenant = model.tasks.get(event.task)?.job.tenant ?? "";
    const runningMax = model.tenants.get(tenant)?.runningMax ?? 0;
    // Shards that have not received the quota yet cannot enforce it; and a shard that is cut off keeps its claims after
    // its slice was lent to another.
    if (!court.connected || runningMax === 0 || court.models.some(({ tenants }) => !tenants.has(tenant)))
      return undefined;
    const counted = court.quotaClaims.get(tenant) ?? new Set<ModelClaim>();
    for (const claim of counted) if (!claim.live) counted.delete(claim);
    if (counted.size >= runningMax)
      return `${tenant} gets claim ${counted.size + 1} of ${runningMax} in shard ${model.shard}`;
    court.quotaClaims.set(tenant, counted);
    court.afterEvent(() => {
      const claim = model.claim(event.task, event.token);
      if (claim) counted.add(claim);
    });
    return undefined;
  },
};
