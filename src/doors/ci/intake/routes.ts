/** Serves the calls about workflows, webhooks and variables. */
import type { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { route, type Route } from "#http/route.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Repository } from "#sources/book.ts";
import { workflowFolder } from "#doors/ci/local/workflows.ts";
import { door } from "#doors/ci/plan.ts";
import { workflowsOf } from "#doors/ci/runs/trigger/files.ts";
import { listedRun } from "#doors/ci/runs/look.ts";
import type { CiSchedules, WorkflowSchedule } from "#doors/ci/runs/trigger/schedules.ts";
import type { Switches } from "#doors/ci/runs/trigger/switches.ts";
import type { TriggerPorts } from "#doors/ci/runs/trigger/trigger-event.ts";
import type { Variables } from "#doors/ci/runs/variables.ts";
import { compileOnce } from "#doors/ci/workflow/compile/compile-once.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";
import { problemText } from "#doors/ci/workflow/problem.ts";
import { badge } from "./badge.ts";
import type { Deliveries } from "./deliveries.ts";
import * as endpoints from "./endpoints.ts";
import { hookPath, type HookPorts, newHookSecret, removeHookSecret } from "./hooks.ts";

export type IntakePorts = {
  readonly client: Pick<WorkClient, "jobs">;
  readonly clock: Clock;
  readonly triggers: TriggerPorts;
  readonly hooks: HookPorts;
  readonly deliveries: Deliveries;
  readonly schedules: CiSchedules;
  readonly switches: Switches;
  readonly variables: Variables;
};

export const intakeRoutes = (ports: IntakePorts): readonly Route[] => [
  ...workflowRoutes(ports),
  ...hookRoutes(ports),
  ...variableRoutes(ports),
];

const workflowRoutes = ({ client, clock, triggers, schedules, switches }: IntakePorts): readonly Route[] => [
  route(endpoints.listWorkflows, async ({ params: { owner, name }, tenant }) => {
    const repository = await triggers.sources.get(tenant, `${owner}/${name}`);
    return { body: { workflows: await listed(repository, { triggers, schedules, switches }) } };
  }),
  route(endpoints.disableWorkflow, async ({ params: { owner, name, workflow }, tenant, caller }) => {
    const { name: repository } = await triggers.sources.get(tenant, `${owner}/${name}`);
    const path = `${workflowFolder}/${workflow}`;
    await switches.disable(tenant, { repository, path, by: caller.principal.name, atMs: clock.wallMs() });
    return undefined;
  }),
  route(endpoints.enableWorkflow, async ({ params: { owner, name, workflow }, tenant }) => {
    const { name: repository } = await triggers.sources.get(tenant, `${owner}/${name}`);
    await switches.enable(tenant, { repository, path: `${workflowFolder}/${workflow}` });
    return undefined;
  }),
  route(endpoints.workflowBadge, async ({ params: { owner, name, workflow }, query: { branch }, tenant }) => {
    const tags = [
      { name: "repository", value: `${owner}/${name}` },
      { name: "path", value: `${workflowFolder}/${workflow}` },
      ...(branch === undefined ? [] : [{ name: "branch", value: branch }]),
    ];
    const [last] = (await client.jobs({ tenant, door, limit: 1, tags })).jobs.map((job) => listedRun(job));
    const picture = badge(last?.workflow ?? workflow, last && (last.conclusion ?? last.status));
    return { body: oneOf(Buffer.from(picture)) };
  }),
];

async function* oneOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

type Listed = z.input<typeof endpoints.WorkflowView>;

async function listed(
  repository: Repository,
  { triggers, schedules, switches }: Pick<IntakePorts, "triggers" | "schedules" | "switches">,
): Promise<Listed[]> {
  const { sources, seen } = triggers;
  const { sha } = await sources.copies.resolve(repository);
  const files = await workflowsOf(sources, repository, sha);
  await seen?.(repository, files);
  const [disabled, all] = [await switches.disabled(repository), await schedules.list(repository)];
  return files.map((file) => viewOf(file, { isDisabled: disabled.has(file.path), all }));
}

function viewOf(
  file: SourceFile,
  { isDisabled, all }: { readonly isDisabled: boolean; readonly all: readonly WorkflowSchedule[] },
): Listed {
  const compiled = compileOnce(file);
  const { path } = file;
  if (!compiled.ok) {
    const problem = compiled.problems.map((one) => problemText(one)).join("; ");
    return { path, name: path, state: "invalid", problem: problem.slice(0, 2_000), events: [], schedules: [] };
  }
  const { name = path, on } = compiled.workflow;
  const schedules = all.filter((one) => one.path === path).map((one) => scheduleOf(one, isDisabled));
  return { path, name, state: isDisabled ? "disabled" : "active", events: Object.keys(on.events), schedules };
}

const timeOf = (ms: number): string => new Date(ms).toISOString();

const scheduleOf = ({ cron, zone, nextMs, last, trouble }: WorkflowSchedule, isDisabled: boolean) => ({
  cron,
  zone,
  ...(nextMs !== undefined && !isDisabled && { next: timeOf(nextMs) }),
  ...(last && { last: { at: timeOf(last.atMs), run: last.run } }),
  ...(trouble !== undefined && { trouble }),
});

const hookRoutes = ({ triggers, hooks, deliveries }: IntakePorts): readonly Route[] => [
  route(endpoints.makeHook, async ({ params: { owner, name }, tenant, caller }) => {
    const found = await triggers.sources.book.get(tenant, `${owner}/${name}`);
    if (!found) throw unknown(`${owner}/${name}`);
    const secret = await newHookSecret(hooks, tenant, found.name, caller.principal.name);
    return { status: 201, body: { path: hookPath(tenant, found.name), secret } };
  }),
  route(endpoints.removeHook, async ({ params: { owner, name }, tenant }) => {
    if (!(await removeHookSecret(hooks, tenant, `${owner}/${name}`))) throw unknown(`${owner}/${name}`);
    return undefined;
  }),
  route(endpoints.listDeliveries, async ({ params: { owner, name }, tenant }) => {
    const all = await deliveries.list(tenant, `${owner}/${name}`);
    const shown = all.map(({ name: delivery, value: { forge, event, id, atMs, handledMs, started = [], why } }) => ({
      delivery,
      forge,
      event,
      id,
      at: timeOf(atMs),
      handled: handledMs !== undefined,
      runs: started,
      ...(why !== undefined && { why }),
    }));
    return { body: { deliveries: shown } };
  }),
];

const unknown = (repository: string): Fault =>
  new Fault("not-found", "find the repository", { repository, try: "register it with: millrace ci add" });

const variableRoutes = ({ variables, clock }: IntakePorts): readonly Route[] => [
  route(endpoints.listVariables, async ({ query, tenant }) => {
    const all = await variables.list(tenant, query);
    return { body: { variables: all.map(({ atMs, ...one }) => ({ ...one, at: timeOf(atMs) })) } };
  }),
  route(endpoints.putVariable, async ({ params: { variable: name }, body, tenant, caller }) => {
    await variables.set(tenant, { name, ...body, by: caller.principal.name, atMs: clock.wallMs() });
    return undefined;
  }),
  route(endpoints.removeVariable, async ({ params: { variable: name }, query, tenant }) => {
    if (!(await variables.remove(tenant, { name, ...query })))
      throw new Fault("not-found", "find the variable", { name });
    return undefined;
  }),
];
