/** Serves POST /v1/jobs: the door plans the job here, on the server, and the work policy judges the plan. */
import { randomUUID } from "node:crypto";
import type { Caller } from "#access/caller.ts";
import { rerunJob, submitJob } from "#api/jobs.ts";
import type { Door, Wishes } from "#door/door.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { Order, WorkClient } from "#shard/client/client.ts";
import type { KindTable } from "#shard/door-kinds.ts";
import { planJob, type JobRequest } from "#app/job-order.ts";
import { outOfBounds, type WorkBounds } from "#app/config/work-config.ts";

export type SubmitPorts = {
  readonly work: Pick<WorkClient, "submit" | "rerun">;
  readonly bounds: WorkBounds;
  readonly kinds: KindTable;
  readonly doors: readonly Door[];
};

type RerunCall = Parameters<Parameters<typeof route<typeof rerunJob>>[1]>[0];
type SubmitCall = Pick<Parameters<Parameters<typeof route<typeof submitJob>>[1]>[0], "body">;

export const submitRoute = ({ work, bounds, kinds, doors }: SubmitPorts): Route =>
  route(submitJob, async ({ body, tenant, caller, headers, signal }) => {
    const { door, key, merge, priority, name, tags, series } = body;
    const unique = uniqueOf(caller, headers);
    const isOperator = caller.principal.roles.has("operator");
    const wishes: Wishes = { tenant, priority, name, key, merge, unique, tags, series, isOperator };
    const order = withKey(planJob(requestIn(body), wishes, door, doors), caller, headers);
    judgeOrder(order, caller, bounds, kinds);
    const { jobId, created, merged, number } = await work.submit(order, { signal });
    const body201 = { job: jobId, created, merged, ...(number !== undefined && { number }) };
    return { status: created ? 201 : 200, body: body201 };
  });

export const rerunRoute = (
  { work, bounds, kinds }: SubmitPorts,
  tenantOf: (call: RerunCall) => string | undefined,
): Route =>
  route(rerunJob, async (call) => {
    const { params, body, caller, headers } = call;
    const given = body.key ?? keyOf(headers);
    const requestKey = given === undefined ? undefined : `rerun ${caller.principal.name} ${given}`;
    const { jobId, created, number } = await work.rerun(params.job, {
      reuse: body.reuse,
      ...(requestKey !== undefined && { requestKey }),
      tenant: tenantOf(call),
      judge: (order) => judgeOrder(order, caller, bounds, kinds),
    });
    return {
      status: created ? 201 : 200,
      body: { job: jobId, created, ...(number !== undefined && { number }) },
    };
  });

function requestIn({ command, document, array }: SubmitCall["body"]): JobRequest {
  if (command !== undefined && document === undefined) return { command, array };
  if (array !== undefined) throw new Problem(400, "body.array: goes with a command; a document says it for each stage");
  if (document !== undefined && command === undefined) return { document };
  throw new Problem(400, "body: send a command or a document, one of them");
}

const keyOf = (headers: Headers): string | undefined => headers.get("idempotency-key") ?? undefined;

/** A call that is repeated has to reach the shard that the first one reached. */
function uniqueOf({ principal }: Caller, headers: Headers): string {
  const key = keyOf(headers);
  return key === undefined ? randomUUID() : `idempotency ${principal.name} ${key}`;
}

/** The shard remembers the call's key: another node, and a restarted one, gives the first answer again. */
function withKey(order: Order, { principal }: Caller, headers: Headers): Order {
  const key = keyOf(headers);
  if (key === undefined || order.requestKey !== undefined) return order;
  return { ...order, requestKey: `idempotency ${principal.name} ${key}` };
}

/** Throws a Problem unless the caller may submit this. */
export function judgeOrder(order: Order, { principal }: Caller, bounds: WorkBounds, kinds: KindTable): void {
  const by = { name: principal.name, isOperator: principal.roles.has("operator") };
  const refused = kinds.refuseJob(order, by);
  if (refused !== undefined) throw new Problem(403, refused);
  const why = by.isOperator ? undefined : outOfBounds({ ...order, kind: "submit" }, bounds);
  if (why !== undefined) throw new Problem(400, why);
}
