/** Serves /v1/builds. */
import type { Caller } from "#access/caller.ts";
import { buildCaller } from "#doors/build/caller.ts";
import { buildRoute } from "#doors/build/http/problems.ts";
import { Problem } from "#http/problem.ts";
import type { Route } from "#http/route.ts";
import { buildOf, type FindFile } from "./document.ts";
import { cancelBuild, listBuilds, showBuild, showBuildAction, submitBuild, watchBuild } from "./endpoints.ts";
import type { BuildsCall, BuildsService } from "./service.ts";
import { buildWords, newsWords, phaseName, reportWords } from "./words.ts";

type Called = { readonly caller: Caller; readonly tenant: string; readonly signal: AbortSignal };

const callOf = ({ caller, tenant, signal }: Called): BuildsCall => ({
  caller: buildCaller(caller.principal, tenant),
  signal,
});

export const buildsRoutes = (service: BuildsService): readonly Route[] => [
  buildRoute(submitBuild, async (call) => {
    const requestId = call.headers.get("idempotency-key") ?? "";
    const build = await buildOf(call.body, noFiles);
    const wanted = { requestId, priority: call.query.priority, what: { kind: "build", value: build } as const };
    const { buildId, created } = await service.submit(wanted, callOf(call));
    const headers = { location: `/v1/builds/${buildId}` };
    return { status: created ? 201 : 200, headers, body: { build: buildId, created } };
  }),
  buildRoute(listBuilds, async (call) => {
    const { limit: pageSize, cursor: pageToken } = call.query;
    const { builds, nextPageToken } = await service.list({ pageSize, pageToken }, callOf(call));
    return { body: { builds: builds.map(buildWords), ...(nextPageToken !== "" && { cursor: nextPageToken }) } };
  }),
  buildRoute(showBuild, async (call) => ({
    body: buildWords(await service.get({ buildId: call.params.build, withActions: true }, callOf(call))),
  })),
  buildRoute(watchBuild, async (call) => {
    const news = service.watch({ buildId: call.params.build }, callOf(call));
    const first = await news.next(); // a build that is not there is a 404, not an empty stream
    return { body: following(first, news) };
  }),
  buildRoute(showBuildAction, async (call) => ({
    body: reportWords(await service.getAction({ buildId: call.params.build, key: call.params.key }, callOf(call))),
  })),
  buildRoute(cancelBuild, async (call) => {
    const { build } = call.params;
    const { phase, cancelled } = await service.cancel({ buildId: build, reason: call.query.reason }, callOf(call));
    return { body: { build, phase: phaseName(phase), cancelled } };
  }),
];

type News = ReturnType<BuildsService["watch"]>;

async function* following(first: Awaited<ReturnType<News["next"]>>, rest: News) {
  if (first.done === true) return;
  yield newsWords(first.value);
  for await (const one of rest) yield newsWords(one);
}

/** They are on the submitter's machine: `millrace build submit` uploads them and names them by digest. */
const noFiles: FindFile = (path) => {
  throw new Problem(400, `upload the file ${path} and name it with blob: it cannot be read from here`);
};
