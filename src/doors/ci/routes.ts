/** Serves /v1/repositories and /v1/runs. Thin: what a run is, plan.ts says, and what it looks like, view.ts. */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Caller } from "#access/caller.ts";
import { lastEventId } from "#http/live/sse.ts";
import { route, type Route } from "#http/route.ts";
import type { Repository } from "#sources/book.ts";
import type { Sources } from "#sources/sources.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { LiveSource } from "#worker/printed/live-source.ts";
import type { PrintedByDoor } from "#worker/follow/printed.ts";
import * as endpoints from "./endpoints.ts";
import { formatLine } from "./job/log/log-line.ts";
import { door, needsIn } from "./plan.ts";
import { dispatch } from "#doors/ci/runs/trigger/dispatch.ts";
import { eventOf, type LogBatch, logFeed, placeIn } from "#doors/ci/runs/logs/log-feed.ts";
import { LogViewers } from "#doors/ci/runs/logs/log-viewers.ts";
import { searchLog } from "#doors/ci/runs/logs/log-search.ts";
import { Searches, searchRuns } from "#doors/ci/runs/logs/search-all.ts";
import type { Tag } from "#kernel/model/model.ts";
import { tellRun } from "./runs/run-socket.ts";
import { type Decisions, withDecisions } from "./runs/decisions.ts";
import { rerun } from "./runs/rerun.ts";
import { detailsOf, findRun, listedRun, taskOf } from "./runs/look.ts";
import { findStored, readRun } from "./runs/record.ts";
import { workflowFolder } from "./local/workflows.ts";
import { type ComingEvent, lookAt, runEvent, type TriggerPorts } from "#doors/ci/runs/trigger/trigger-event.ts";
import type { WhyPorts } from "./why/ask.ts";
import { unknownAmong } from "./why/labels.ts";
import { runnersFor } from "./lists/routes.ts";
import { whyRoutes } from "./why/routes.ts";
import type { Finding } from "./lint/finding.ts";
import { lint } from "./lint/lint.ts";

export type RoutePorts = {
  readonly client: WorkClient;
  readonly clock: Clock;
  readonly live: LiveSource;
  readonly printed: PrintedByDoor;
  readonly sources: Sources;
  readonly start: TriggerPorts;
  readonly decisions: Decisions;
  readonly pools: WhyPorts["pools"];
};

export const ciRoutes = (ports: RoutePorts): readonly Route[] => [
  ...repositoryRoutes(ports),
  ...eventRoutes(ports),
  ...runRoutes(ports),
  rerunRoute(ports),
  ...logRoutes(ports),
  ...whyRoutes(ports),
];

const isOperator = ({ principal }: Caller): boolean => principal.roles.has("operator");

const repositoryRoutes = ({ client, pools, sources, start }: RoutePorts): readonly Route[] => [
  route(endpoints.listRepositories, async ({ tenant }) => ({
    body: { repositories: (await sources.book.list(tenant)).map(shown) },
  })),
  route(endpoints.putRepository, async ({ body: { repository, url }, tenant, caller }) => {
    if (url === undefined) return { status: 201, body: shown(await sources.keep(tenant, repository)) };
    const registered = await sources.register(tenant, repository, url);
    await lookAt(start, registered, isOperator(caller));
    return { status: 201, body: shown(registered) };
  }),
  route(endpoints.removeRepository, async ({ params: { owner, name }, tenant }) => {
    if (!(await sources.book.remove(tenant, `${owner}/${name}`))) throw unknownRepository(`${owner}/${name}`);
    return undefined;
  }),
  route(endpoints.dispatchWorkflow, async ({ params: { owner, name }, body, tenant, caller, headers }) => {
    const record = await sources.get(tenant, `${owner}/${name}`);
    const key = headers.get("idempotency-key");
    const { jobId, created, labels } = await dispatch(start, {
      record,
      ...body,
      actor: caller.principal.name,
      isTrusted: isOperator(caller),
      ...(key !== null && { key: `dispatch ${caller.principal.name} ${key}` }),
    });
    const warnings = await labelWarnings({ client, pools }, { run: jobId, tenant, labels });
    return { status: 202, body: { run: jobId, created, ...(warnings.length > 0 && { warnings }) } };
  }),
];

/** Said at once: a run with a misspelled label would wait for a day. */
async function labelWarnings(
  { client, pools }: Pick<RoutePorts, "client" | "pools">,
  { run, tenant, labels }: { readonly run: string; readonly tenant: string; readonly labels: readonly string[] },
): Promise<string[]> {
  const unknown = unknownAmong(labels, await client.executors(run, { tenant }));
  if (unknown === "") return [];
  const requires = labels.map((label) => `runner=${label}`);
  return (await pools({ tenant, requires })).length > 0 ? [] : [unknown];
}

const eventRoutes = ({ client, clock, sources, start }: RoutePorts): readonly Route[] => [
  route(endpoints.sendEvent, async ({ params: { owner, name }, body, tenant, caller }) => {
    const { event, payload, ...rest } = body;
    const repository = await sources.get(tenant, `${owner}/${name}`);
    const { started, passed } = await runEvent(start, repository, {
      ...rest,
      name: event,
      payload: payload as ComingEvent["payload"],
      actor: caller.principal.name,
      isTrusted: isOperator(caller),
    });
    return { status: 202, body: { started: [...started], passed: [...passed] } };
  }),
  route(endpoints.validateWorkflow, async ({ body, tenant }) => {
    const known = await sources.book.list(tenant);
    const runners = await runnersFor({ client, clock }, tenant);
    const found = lint(body, {
      repositories: new Set(known.map(({ name }) => name.toLowerCase())),
      labels: runners.flatMap(({ labels }) => labels),
    });
    const shownAt = ({ message, at }: Finding) => ({ message, ...(at && { line: at.line, column: at.column }) });
    const [problems, warnings] = [found.filter(isError), found.filter((one) => !isError(one))];
    return {
      body: {
        valid: problems.length === 0,
        problems: problems.map((one) => shownAt(one)),
        warnings: warnings.map((one) => ({ ...shownAt(one), rule: one.rule })),
      },
    };
  }),
];

const isError = ({ level }: Finding): boolean => level === "error";

const shown = ({ name, url }: Repository) => ({ repository: name, ...(url !== undefined && { url }) });

const unknownRepository = (repository: string): Fault =>
  new Fault("not-found", "find the repository", { repository, try: "register it with: millrace ci add" });

type ShownPorts = Pick<RoutePorts, "client" | "start" | "decisions">;

export async function shownRun({ client, start, decisions }: ShownPorts, run: string, tenant: string) {
  const { view, about } = await findRun(client, run, tenant);
  const stored = await findStored(start.blobs, about.record);
  const needs = stored ? needsIn(await readRun(start.blobs, stored)) : new Map<string, readonly string[]>();
  return await withDecisions(detailsOf(run, view, about, needs), { tenant, run, tags: view.tags }, decisions);
}

/** Tags that a run of the repository, workflow, branch, event and person has. */
function tagsWanted({ repository, workflow, branch, event, actor }: RunsWanted): readonly Tag[] {
  const wanted = {
    repository,
    branch,
    event,
    actor,
    ...(workflow === undefined ? {} : { path: workflow.includes("/") ? workflow : `${workflowFolder}/${workflow}` }),
  };
  return Object.entries(wanted).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]));
}

type RunsWanted = Readonly<
  Partial<Record<"repository" | "workflow" | "branch" | "event" | "actor", string | undefined>>
>;

const phases = { success: "SUCCEEDED", failure: "FAILED", cancelled: "CANCELLED" } as const;

const runRoutes = (ports: RoutePorts): readonly Route[] => [
  route(endpoints.listRuns, async ({ query, tenant }) => {
    const { limit, cursor, conclusion } = query;
    const tags = tagsWanted(query);
    const page = await ports.client.jobs({
      tenant,
      door,
      limit,
      ...(tags.length > 0 && { tags }),
      ...(conclusion && { phase: phases[conclusion] }),
      ...(cursor !== undefined && { cursor }),
    });
    const next = page.cursor === undefined ? {} : { next: page.cursor };
    const items = page.jobs.map((job) =>
      withDecisions(listedRun(job), { tenant, run: job.jobId, tags: job.tags }, ports.decisions),
    );
    return { body: { items: await Promise.all(items), ...next } };
  }),
  route(endpoints.showRun, async ({ params: { run }, tenant }) => ({ body: await shownRun(ports, run, tenant) })),
  route(endpoints.runSocket, async ({ params: { run }, tenant }) => {
    await findRun(ports.client, run, tenant); // a missing run refuses the upgrade with 404
    const look = async () => await shownRun(ports, run, tenant);
    return { body: async (connection) => await tellRun(ports, { run, look }, connection) };
  }),
  route(endpoints.cancelRun, async ({ params: { run }, tenant, caller }) => {
    await findRun(ports.client, run, tenant);
    await ports.client.cancel(run, `cancelled by ${caller.principal.name}`);
    return undefined;
  }),
];

const rerunRoute = ({ client, start }: RoutePorts): Route =>
  route(endpoints.rerunRun, async ({ params: { run }, body, tenant, caller, headers }) => {
    const { view, about } = await findRun(client, run, tenant);
    const key = headers.get("idempotency-key");
    const again = await rerun(
      start,
      { run, view, about },
      {
        ...body,
        isTrusted: isOperator(caller),
        ...(key !== null && { key: `rerun ${caller.principal.name} ${key}` }),
      },
    );
    return { status: 202, body: { run: again.jobId } };
  });

const logRoutes = ({ client, clock, live, printed }: RoutePorts): readonly Route[] => {
  const ports = { client, clock, live, printed };
  const searches = new Searches();
  const viewers = new LogViewers({ feed: (query) => logFeed(ports, query), clock });
  return [
    route(
      endpoints.followLog,
      async ({ params: { run, job }, query: { follow, step }, tenant, headers, url, signal }) => {
        const { view } = await findRun(client, run, tenant);
        const at = { run, tenant, task: taskOf(run, view, job), from: placeIn(lastEventId(headers, url)), signal };
        return { body: follow ? viewers.view({ ...at, step }) : eventsOf(logFeed(ports, { ...at, follow }), step) };
      },
    ),
    route(endpoints.readLog, async ({ params: { run, job }, query: { step }, tenant, signal }) => {
      const { view } = await findRun(client, run, tenant);
      const at = { run, tenant, task: taskOf(run, view, job), follow: false, signal };
      return { body: textOf(logFeed(ports, at), step) };
    }),
    route(endpoints.searchLog, async ({ params: { run, job }, query: { step, text, limit }, tenant, signal }) => {
      const { view } = await findRun(client, run, tenant);
      const at = { run, tenant, task: taskOf(run, view, job), follow: false, signal };
      return { body: await searchLog(eventsOf(logFeed(ports, at), step), { text, limit }) };
    }),
    route(endpoints.searchLogs, async ({ query, tenant, signal }) => {
      const { text, limit, cursor } = query;
      const wanted = { tenant, text, limit, cursor, tags: tagsWanted(query), signal };
      const found = await searches.run(tenant, () =>
        searchRuns({ client, clock, feed: (of) => logFeed(ports, of) }, wanted),
      );
      return { body: { ...found, items: [...found.items] } };
    }),
  ];
};

async function* eventsOf(feed: AsyncIterable<LogBatch>, step: number | undefined) {
  for await (const batch of feed) yield eventOf(batch, step);
}

async function* textOf(feed: AsyncIterable<LogBatch>, step: number | undefined): AsyncGenerator<Uint8Array> {
  for await (const { data } of eventsOf(feed, step))
    yield Buffer.from(data.lines.map((line) => formatLine(line)).join(""));
}
