/** Serves POST /v1/jobs: the door plans the job here, on the server, and the work policy judges the plan. */
import { randomUUID } from "node:crypto";
import type { Caller } from "#access/caller.ts";
import { submitJob } from "#api/jobs.ts";
import { planRequest } from "#doors/shell/serve.ts";
import { door as shell, type Wishes } from "#doors/shell/plan.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { Order, WorkClient } from "#shard/client/client.ts";
import { outOfBounds, type WorkBounds } from "#app/config/work-config.ts";
import { kindTable } from "#app/door-kinds.ts";
import { readDocument } from "#app/shell-job.ts";

export type SubmitPorts = { readonly work: Pick<WorkClient, "submit">; readonly bounds: WorkBounds };

/** Doors whose jobs are submitted here. */
const planners: Readonly<Record<string, typeof planRequest>> = { [shell]: planRequest };

export const submitRoute = ({ work, bounds }: SubmitPorts): Route =>
  route(submitJob, async ({ body, tenant, caller, headers, signal }) => {
    const { door, key, merge, priority, command, document, name } = body;
    const plan = Object.hasOwn(planners, door) ? planners[door] : undefined;
    if (!plan) throw new Problem(400, `body.door: no jobs are submitted to ${JSON.stringify(door)} by this call`);
    const wishes: Wishes = {
      tenant,
      priority,
      ...(key !== undefined && { key }),
      ...(merge !== undefined && { merge }),
      unique: uniqueOf(caller, headers),
    };
    const order = withKey(plan({ command, document, name }, wishes, readDocument), caller, headers);
    judge(order, caller, bounds);
    const { jobId, created, merged } = await work.submit(order, { signal });
    return { status: created ? 201 : 200, body: { job: jobId, created, merged } };
  });

const keyOf = (headers: Headers): string | undefined => headers.get("idempotency-key") ?? undefined;

/** A call that is repeated has to reach the shard that the first one reached. */
function uniqueOf({ principal }: Caller, headers: Headers): string {
  const key = keyOf(headers);
  return key === undefined ? randomUUID() : `idempotency ${principal.name} ${key}`;
}

/** The shard remembers the call's key: another node, and one that was started anew, gives the first answer again. */
function withKey(order: Order, { principal }: Caller, headers: Headers): Order {
  const key = keyOf(headers);
  if (key === undefined || order.requestKey !== undefined) return order;
  return { ...order, requestKey: `idempotency ${principal.name} ${key}` };
}

function judge(order: Order, { principal }: Caller, bounds: WorkBounds): void {
  const by = { name: principal.name, isOperator: principal.roles.has("operator") };
  const refused = kindTable.refuseJob(order, by);
  if (refused !== undefined) throw new Problem(403, refused);
  const why = by.isOperator ? undefined : outOfBounds({ ...order, kind: "submit" }, bounds);
  if (why !== undefined) throw new Problem(400, why);
}
