/** For tests: every HTTP route of a node, called with names of things. */
import { cacheProtocols } from "#doors/build/http/http-caches.ts";
import { actionProtocols } from "#doors/ci/services/services.ts";
import { httpRoutes } from "#edge/port/routes.ts";
import { readEvents } from "#http/live/sse.ts";
import { apiEndpoints } from "#app/compose/api.ts";
import { mounts } from "#app/compose/edge.ts";
import type { Names } from "./names.ts";
import { clusterOnly, type Case } from "./row.ts";

export type HttpCaller = { readonly http: (method: string, path: string, init?: RequestInit) => Promise<Response> };

/** All of them, from the tables by which the node serves them. */
export const httpRouteNames = (): readonly string[] => {
  const none = undefined as never;
  const own = httpRoutes({ admission: none, login: none, registry: none, notReady: () => [] });
  return [
    ...own.routes.filter(({ method }) => method !== "ALL").map(({ path }) => `edge ${path}`),
    ...mounts.filter((mount) => mount !== "doors" && !(mount in below)).map((mount) => `mount ${mount}`),
    ...Object.entries(below).flatMap(([mount, routes]) => routes.map((route) => `${mount} ${route}`)),
  ];
};

/** What is below a mount; caches are what the build door serves besides its routes. */
const below: Readonly<Record<string, readonly string[]>> = {
  api: apiEndpoints.map(({ name }) => name),
  caches: cacheProtocols.map(({ name }) => name),
  actions: actionProtocols,
};

type Shown = { readonly status: number; readonly headers: object; readonly body: string };

/** Those that reveal something of what was found. */
const headersShown = ["allow", "content-type", "etag", "location", "retry-after", "www-authenticate"];

async function shown(response: Response): Promise<Shown> {
  // The tag of a JSON answer is a hash of it, and it repeats the names that were asked for.
  const isJson = response.headers.get("content-type") === "application/json";
  const names = headersShown.filter((name) => !(isJson && name === "etag"));
  const headers = names.map((name) => [name, response.headers.get(name)]);
  return { status: response.status, headers: Object.fromEntries(headers), body: await head(response) };
}

/** A watch goes on for ever: its first part is enough. */
async function head({ body }: Response): Promise<string> {
  for await (const part of body ?? []) return Buffer.from(part).toString();
  return "";
}

const ask = (
  method: string,
  path: (named: Names) => string,
  more: Omit<Case<HttpCaller>, "run"> & { readonly init?: RequestInit } = {},
): Case<HttpCaller> => {
  const { init, ...rest } = more;
  return { what: method, ...rest, run: async (as, named) => shown(await as.http(method, path(named), init)) };
};

const noRepository = "neither has such a repository";
const operatorsOnly = clusterOnly("operators");
const tasksOnly = { alike: "only tokens of claims are accepted", answers: [] };
const jobsOnly = "only tokens of jobs are accepted";
const digest = ({ blob }: Names): string => `${blob.hash}/${blob.sizeBytes}`;
const body = { init: { body: "forged" } };
const json = (value: object) => ({
  init: { body: JSON.stringify(value), headers: { "content-type": "application/json" } },
});

/** Requests to a cache of whole entries: to read, to replace, and to delete. */
const entry = (path: (key: string) => string, put: "may" | "once"): readonly Case<HttpCaller>[] => [
  ask("GET", ({ key }) => path(key)),
  ask("HEAD", ({ key }) => path(key)),
  ask("DELETE", ({ key }) => path(key), put === "once" ? { alike: "nobody deletes any" } : {}),
  ask("PUT", ({ key }) => path(key), put === "may" ? { ...body, alike: "it may write both" } : body),
];

export const httpRows: Readonly<Record<string, readonly Case<HttpCaller>[]>> = {
  "edge /healthz": [ask("GET", () => "/healthz", clusterOnly("everyone"))],
  "edge /login": [ask("GET", ({ key }) => `/login?code=${key}`, { alike: "neither is a code" })],
  "edge /livez": [ask("GET", () => "/livez", clusterOnly("everyone"))],
  "edge /readyz": [ask("GET", () => "/readyz", clusterOnly("everyone"))],
  "edge /metrics": [
    {
      ...clusterOnly("cluster.read"), // as for metrics.read
      run: async (as) => {
        const { status, body: text } = await shown(await as.http("GET", "/metrics"));
        const series = text.split("\n").filter((line) => line.includes("tenant="));
        return { status, series: series.map((line) => line.replace(/ [^ ]*$/, "")) };
      },
    },
  ],
  "api GET /v1/jobs": [ask("GET", () => "/v1/jobs?limit=5", { alike: "it names nothing" })],
  "api GET /v1/jobs/count": [
    ask("GET", () => "/v1/jobs/count", { alike: "it names nothing" }),
    ask("GET", ({ tenant }) => `/v1/jobs/count?tenant=${tenant}`),
  ],
  "api GET /v1/jobs/watch": [
    {
      alike: "it names nothing",
      run: async (as) => {
        const response = await as.http("GET", "/v1/jobs/watch?limit=5");
        if (!response.ok) return shown(response);
        for await (const { data } of readEvents(response.body ?? ReadableStream.from<Uint8Array>([])))
          return { status: 200, data };
        return { status: response.status };
      },
    },
  ],
  "api GET /v1/events": [
    {
      what: "of a job",
      // The cursor counts what the shards recorded, as every stamp does.
      run: async (as, { jobId }) => {
        const response = await as.http("GET", `/v1/events?from=oldest&job=${jobId}`);
        if (!response.ok) return shown(response);
        const { items } = (await response.json()) as { readonly items: unknown };
        return { status: response.status, items };
      },
    },
    ask("GET", ({ tenant }) => `/v1/events?from=oldest&limit=1&tenant=${tenant}`),
  ],
  "api GET /v1/events/watch": [
    {
      run: async (as, { tenant }) => {
        const response = await as.http("GET", `/v1/events/watch?from=oldest&tenant=${tenant}`);
        if (!response.ok) return shown(response);
        for await (const { data } of readEvents(response.body ?? ReadableStream.from<Uint8Array>([])))
          return { status: 200, data };
        return { status: response.status };
      },
    },
  ],
  "api GET /v1/jobs/{job}": [ask("GET", ({ jobId }) => `/v1/jobs/${jobId}`)],
  "api GET /v1/jobs/{job}/watch": [ask("GET", ({ jobId }) => `/v1/jobs/${jobId}/watch`)],
  "api POST /v1/jobs": [
    ask("POST", () => "/v1/jobs", { ...json({ command: ["true"] }), alike: "shell work is for operators" }),
    ask("POST", () => "/v1/jobs", {
      ...json({ command: ["true"], door: "own" }),
      alike: "no jobs of other doors are submitted so",
    }),
    ask("POST", ({ tenant }) => `/v1/jobs?tenant=${tenant}`, json({ command: ["true"] })),
  ],
  "api GET /v1/jobs/{job}/logs": [
    ask("GET", ({ jobId }) => `/v1/jobs/${jobId}/logs`),
    ask("GET", ({ build }) => `/v1/jobs/${build}/logs?follow=true`),
    {
      what: "GET a task of another job",
      alike: "the job that is named has no such task",
      run: async (as, named) => {
        const path = `/v1/jobs/${named.build}/logs?task=t0-${named.tasks.read.task.toString(36)}`;
        return { status: (await as.http("GET", path)).status };
      },
    },
  ],
  "api GET /v1/jobs/{job}/tasks/{task}/log": [
    ask("GET", ({ jobId }) => `/v1/jobs/${jobId}/tasks/t0-1/log`),
    ask("GET", ({ build }) => `/v1/jobs/${build}/tasks/t0-1/log?stream=stdout`),
  ],
  "api GET /v1/jobs/{job}/stages/{stage}/results": [
    ask("GET", ({ jobId }) => `/v1/jobs/${jobId}/stages/run/results`),
    ask("GET", ({ build }) => `/v1/jobs/${build}/stages/build/results?generation=1`),
  ],
  "api GET /v1/jobs/{job}/follow": [
    ask("GET", ({ jobId }) => `/v1/jobs/${jobId}/follow`),
    ask("GET", ({ build }) => `/v1/jobs/${build}/follow?output=true`),
  ],
  "api GET /v1/jobs/{job}/why": [ask("GET", ({ jobId }) => `/v1/jobs/${jobId}/why`)],
  "api POST /v1/jobs/{job}/signal": [
    ask("POST", ({ jobId }) => `/v1/jobs/${jobId}/signal`, json({ stage: "no such stage", name: "approve" })),
  ],
  "api POST /v1/jobs/{job}/rerun": [
    ask("POST", ({ jobId }) => `/v1/jobs/${jobId}/rerun`, { ...json({}), alike: "neither was tracked" }),
  ],
  "api POST /v1/jobs/{job}/cancel": [ask("POST", ({ jobId }) => `/v1/jobs/${jobId}/cancel`, json({}))],
  "api GET /v1/cluster": [
    {
      ...clusterOnly("cluster.read"),
      run: async (as) => ({ status: (await as.http("GET", "/v1/cluster")).status }),
    },
  ],
  "api GET /v1/node": [
    {
      ...clusterOnly("cluster.read"),
      run: async (as) => ({ status: (await as.http("GET", "/v1/node")).status }),
    },
  ],
  "api PUT /v1/tenants/{name}": [
    ask("PUT", ({ tenant }) => `/v1/tenants/${tenant}`, { ...json({}), ...operatorsOnly }),
  ],
  "api GET /v1/audit": [
    ask("GET", () => "/v1/audit?limit=5&cursor=none", { alike: "that is no cursor" }),
    ask("GET", ({ tenant }) => `/v1/audit?limit=5&tenant=${tenant}`),
    ask("GET", () => "/v1/audit?trail=cluster", operatorsOnly),
  ],
  "api GET /v1/audit/export": [ask("GET", ({ tenant }) => `/v1/audit/export?tenant=${tenant}`)],
  "api GET /v1/kept": [
    ask("GET", () => "/v1/kept?limit=5", { alike: "it names nothing" }),
    ask("GET", ({ tenant }) => `/v1/kept?tenant=${tenant}`),
  ],
  "api GET /v1/pools": [
    ask("GET", () => "/v1/pools", { alike: "it names nothing" }),
    ask("GET", ({ tenant }) => `/v1/pools?tenant=${tenant}`),
  ],
  "api GET /v1/pools/{pool}": [ask("GET", ({ pool }) => `/v1/pools/${pool}`)],
  "api GET /v1/pools/{pool}/desired": [ask("GET", ({ pool }) => `/v1/pools/${pool}/desired`)],
  "api GET /v1/usage": [
    ask("GET", () => "/v1/usage", { alike: "it names nothing" }),
    ask("GET", ({ tenant }) => `/v1/usage?tenant=${tenant}`),
  ],
  "api GET /v1/webhooks": [ask("GET", () => "/v1/webhooks?limit=5", { alike: "it names nothing" })],
  "api GET /v1/webhooks/{name}": [ask("GET", ({ webhook }) => `/v1/webhooks/${webhook}`)],
  "api PUT /v1/webhooks/{name}": [
    ask("PUT", ({ tenant }) => `/v1/webhooks/forged?tenant=${tenant}`, json({ url: "https://hooks.invalid/" })),
  ],
  "api POST /v1/webhooks/{name}/test": [
    ask("POST", ({ webhook }) => `/v1/webhooks/${webhook}/test`, { alike: "nothing is sent by a test" }),
  ],
  "api POST /v1/webhooks/{name}/redeliver": [
    ask("POST", ({ webhook }) => `/v1/webhooks/${webhook}/redeliver`, json({})),
  ],
  "api DELETE /v1/webhooks/{name}": [ask("DELETE", ({ webhook }) => `/v1/webhooks/${webhook}`)],
  "api GET /v1/schedules": [ask("GET", () => "/v1/schedules?limit=5", { alike: "it names nothing" })],
  "api GET /v1/schedules/{name}": [ask("GET", ({ schedule }) => `/v1/schedules/${schedule}`)],
  "api PUT /v1/schedules/{name}": [
    ask("PUT", ({ tenant }) => `/v1/schedules/forged?tenant=${tenant}`, json({ cron: "0 0 1 1 *", command: ["true"] })),
  ],
  "api POST /v1/schedules/{name}/pause": [ask("POST", ({ schedule }) => `/v1/schedules/${schedule}/pause`)],
  "api POST /v1/schedules/{name}/resume": [ask("POST", ({ schedule }) => `/v1/schedules/${schedule}/resume`)],
  "api DELETE /v1/schedules/{name}": [ask("DELETE", ({ schedule }) => `/v1/schedules/${schedule}`)],
  "api GET /v1/effects": [
    ask("GET", () => "/v1/effects?limit=5", { alike: "it names nothing" }),
    ask("GET", ({ tenant }) => `/v1/effects?limit=5&tenant=${tenant}`),
  ],
  "api POST /v1/effects:begin": [ask("POST", () => "/v1/effects:begin", { ...json({ name: "x" }), ...tasksOnly })],
  "api POST /v1/effects:commit": [ask("POST", () => "/v1/effects:commit", { ...json({ name: "x" }), ...tasksOnly })],
  "api POST /v1/effects:undo": [ask("POST", () => "/v1/effects:undo", { ...json({ name: "x" }), ...tasksOnly })],
  "api POST /v1/effects:ask": [ask("POST", () => "/v1/effects:ask", { ...json({ name: "x" }), ...tasksOnly })],
  "api GET /v1/effects/{key+}": [ask("GET", ({ key }) => `/v1/effects/job/${key}`, { alike: "neither has begun any" })],
  "api PUT /v1/effects/{key+}": [
    ask("PUT", ({ key }) => `/v1/effects/job/${key}`, { ...json({ wasDone: true }), alike: "neither has begun any" }),
    ask("PUT", ({ tenant }) => `/v1/effects/job/x?tenant=${tenant}`, json({ wasDone: true })),
  ],
  "api DELETE /v1/effects/{key+}": [
    ask("DELETE", ({ key }) => `/v1/effects/job/${key}`, { alike: "neither has begun any" }),
    ask("DELETE", ({ tenant }) => `/v1/effects/job/x?tenant=${tenant}`),
  ],
  "api GET /v1/secrets": [
    ask("GET", () => "/v1/secrets?limit=5", { alike: "it names nothing" }),
    ask("GET", ({ tenant }) => `/v1/secrets?limit=5&tenant=${tenant}`),
  ],
  "api DELETE /v1/secrets/{name+}": [ask("DELETE", ({ secret }) => `/v1/secrets/${secret}`)],
  "api PUT /v1/secrets/{name+}": [
    ask("PUT", ({ tenant }) => `/v1/secrets/forged?tenant=${tenant}`, json({ value: "forged" })),
  ],
  ...Object.fromEntries(
    [
      ["/api/v3/orgs/{owner}/actions/secrets", "/api/v3/orgs/a/actions/secrets", "it names nothing"],
      ["/api/v3/repos/{owner}/{name}/actions/secrets", "/api/v3/repos/a/b/actions/secrets", noRepository],
      [
        "/api/v3/repos/{owner}/{name}/environments/{environment}/secrets",
        "/api/v3/repos/a/b/environments/c/secrets",
        noRepository,
      ],
    ].flatMap(([path = "", at = "", alike = ""]) => [
      [`api GET ${path}/public-key`, [ask("GET", () => `${at}/public-key`, { alike })]],
      [`api GET ${path}`, [ask("GET", () => at, { alike })]],
      [
        `api PUT ${path}/{secret}`,
        [ask("PUT", () => `${at}/X`, { ...json({ encrypted_value: "eA==", key_id: "1" }), alike })],
      ],
      [`api DELETE ${path}/{secret}`, [ask("DELETE", () => `${at}/X`, { alike })]],
    ]),
  ),
  "api POST /v1/vault/rotate": [ask("POST", () => "/v1/vault/rotate", operatorsOnly)],
  "api GET /.well-known/openid-configuration": [
    ask("GET", () => "/.well-known/openid-configuration", clusterOnly("everyone")),
  ],
  "api GET /.well-known/jwks": [ask("GET", () => "/.well-known/jwks", clusterOnly("everyone"))],
  "api POST /v1/issuer/rotate": [
    ask("POST", () => "/v1/issuer/rotate", { ...operatorsOnly, ...json({ revoke: true }) }),
  ],
  "api GET /v1/jobs/{job}/artifacts": [
    ask("GET", ({ jobId }) => `/v1/jobs/${jobId}/artifacts?limit=5`),
    ask("GET", ({ jobId, tenant }) => `/v1/jobs/${jobId}/artifacts?limit=5&tenant=${tenant}`),
  ],
  "api GET /v1/jobs/{job}/artifacts/{name+}": [
    ask("GET", ({ jobId, key }) => `/v1/jobs/${jobId}/artifacts/${key}`, { alike: "neither has such an artifact" }),
  ],
  "api PUT /v1/task/artifacts/{name+}": [
    ask("PUT", ({ key }) => `/v1/task/artifacts/${key}`, { ...body, ...tasksOnly }),
  ],
  "api GET /v1/task/artifacts/{name+}": [ask("GET", ({ key }) => `/v1/task/artifacts/${key}`, tasksOnly)],
  "api PUT /v1/task/checkpoint": [ask("PUT", () => "/v1/task/checkpoint", { ...body, ...tasksOnly })],
  "api GET /v1/task/artifacts": [ask("GET", () => "/v1/task/artifacts?limit=5", tasksOnly)],
  "api PUT /v1/task/test-reports/{name}": [
    ask("PUT", ({ key }) => `/v1/task/test-reports/${key}`, { ...body, ...tasksOnly }),
  ],
  "api POST /v1/task/steps": [
    ask("POST", () => "/v1/task/steps", { ...json({ name: "forged", status: "started" }), ...tasksOnly }),
  ],
  "api POST /v1/workers/tokens": [ask("POST", () => "/v1/workers/tokens", { ...operatorsOnly, ...json({}) })],
  "api GET /v1/workers/tokens": [
    ask("GET", () => "/v1/workers/tokens?limit=5", { alike: "it names nothing" }),
    ask("GET", ({ tenant }) => `/v1/workers/tokens?limit=5&tenant=${tenant}`, { alike: "there are none" }),
  ],
  "api DELETE /v1/workers/tokens/{id}": [ask("DELETE", ({ key }) => `/v1/workers/tokens/${key}`, operatorsOnly)],
  "api GET /v1/workers": [
    ask("GET", () => "/v1/workers?limit=5", { alike: "it names nothing" }),
    ask("GET", ({ tenant }) => `/v1/workers?limit=5&tenant=${tenant}`, { alike: "there are none" }),
  ],
  "api DELETE /v1/workers/{id}": [ask("DELETE", ({ key }) => `/v1/workers/${key}`, operatorsOnly)],
  "api POST /v1/workers/register": [
    ask("POST", () => "/v1/workers/register", {
      ...json({ token: "mrw1.x.r-000000000000.forged", instance: "0".repeat(32), version: "0.1.0", slots: 1 }),
      alike: "neither is a token",
    }),
  ],
  "api POST /v1/workers/renew": [
    ask("POST", () => "/v1/workers/renew", {
      ...json({ version: "0.1.0", slots: 1 }),
      alike: "only tokens of workers that registered are accepted",
    }),
  ],
  "api POST /v1/workers/leave": [
    ask("POST", () => "/v1/workers/leave", { alike: "only tokens of workers that registered are accepted" }),
  ],
  "api GET /v1/session": [ask("GET", () => "/v1/session", clusterOnly("known"))],
  "api GET /v1/openapi.json": [
    {
      ...clusterOnly("known"),
      run: async (as) => ({ status: (await as.http("GET", "/v1/openapi.json")).status }),
    },
  ],
  "api GET /v1/batch/queries/{job}": [
    ask("GET", ({ jobId }) => `/v1/batch/queries/${jobId}`, { alike: "neither has such a query" }),
  ],
  "api GET /v1/deploy/keys": [ask("GET", () => "/v1/deploy/keys", { alike: "it names nothing" })],
  "api POST /v1/deploy/keys": [ask("POST", () => "/v1/deploy/keys", operatorsOnly)],
  "api DELETE /v1/deploy/keys/{key}": [ask("DELETE", () => `/v1/deploy/keys/${"0".repeat(32)}`, operatorsOnly)],
  "api GET /v1/deploy/machines/{machine}/goals": [
    ask("GET", ({ key }) => `/v1/deploy/machines/${key}/goals?region=eu`, { alike: "any name is a machine's" }),
  ],
  "api POST /v1/deploy/machines/{machine}/reports": [
    ask("POST", ({ key }) => `/v1/deploy/machines/${key}/reports?region=eu`, {
      ...json({ service: "web", goalVersion: 0, state: "idle", running: null, why: "" }),
      alike: "any name is a machine's",
    }),
  ],
  "api GET /v1/deploy/caps": [ask("GET", () => "/v1/deploy/caps", { alike: "it names nothing" })],
  "api POST /v1/deploy/caps": [
    ask("POST", () => "/v1/deploy/caps", { ...json({ host: null, rack: null, wan: null }), alike: "it names nothing" }),
  ],
  "api DELETE /v1/deploy/machines/{machine}": [ask("DELETE", ({ key }) => `/v1/deploy/machines/${key}`)],
  "api GET /v1/deploy/blobs/{digest+}": [ask("GET", (named) => `/v1/deploy/blobs/${digest(named)}`)],
  "api POST /v1/deploy/machines/{machine}/swarm": [
    ask("POST", ({ key }) => `/v1/deploy/machines/${key}/swarm`, {
      ...json({ question: { kind: "complete", content: "none/1" } }),
      alike: "neither has such a swarm",
    }),
  ],
  "api GET /v1/deploy/units/{content+}": [
    ask("GET", (named) => `/v1/deploy/units/${digest(named)}?stripe=0&from=0&to=1&priority=1`),
  ],
  "api POST /v1/deploy/releases": [
    ask("POST", () => "/v1/deploy/releases", { ...json({}), alike: "it names nothing" }),
  ],
  "api GET /v1/deploy/machines": [ask("GET", () => "/v1/deploy/machines", { alike: "it names nothing" })],
  "api GET /v1/deploy/services": [ask("GET", () => "/v1/deploy/services", { alike: "it names nothing" })],
  "api POST /v1/deploy/services/{service}/pins": [
    ask("POST", () => "/v1/deploy/services/web/pins", { ...json({}), alike: "neither has such a service" }),
  ],
  "api POST /v1/deploy/services/{service}/unpin": [
    ask("POST", () => "/v1/deploy/services/web/unpin", { ...json({}), alike: "neither has such a service" }),
  ],
  "api GET /v1/deploy/services/{service}": [
    ask("GET", () => "/v1/deploy/services/web?regions=eu", { alike: "neither has such a service" }),
  ],
  "api POST /v1/deploy/services/{service}/rollback": [
    ask("POST", () => "/v1/deploy/services/web/rollback", { ...json({}), alike: "neither has such a service" }),
  ],
  "api POST /v1/deploy/services/{service}/halt": [
    ask("POST", () => "/v1/deploy/services/web/halt", { ...json({}), alike: "neither has such a service" }),
  ],
  "api GET /v1/deploy/releases/{job}": [
    ask("GET", ({ jobId }) => `/v1/deploy/releases/${jobId}`, { alike: "neither job is a release" }),
  ],
  "api GET /v1/deploy/releases/{job}/watch": [
    ask("GET", ({ jobId }) => `/v1/deploy/releases/${jobId}/watch`, { alike: "neither job is a release" }),
  ],
  "api GET /v1/deploy/releases/{job}/why": [
    ask("GET", ({ jobId }) => `/v1/deploy/releases/${jobId}/why`, { alike: "neither job is a release" }),
  ],
  "api POST /v1/deploy/releases/{job}/pause": [
    ask("POST", ({ jobId }) => `/v1/deploy/releases/${jobId}/pause`, json({ paused: true })),
  ],
  "api POST /v1/deploy/releases/{job}/abort": [ask("POST", ({ jobId }) => `/v1/deploy/releases/${jobId}/abort`)],
  "api GET /v1/deploy/jobs": [ask("GET", () => "/v1/deploy/jobs", { alike: "it names nothing" })],
  "api POST /v1/deploy/plan": [ask("POST", () => "/v1/deploy/plan", { ...json({}), alike: "it names nothing" })],
  "api GET /v1/deploy/services/{service}/drift": [
    ask("GET", () => "/v1/deploy/services/web/drift?regions=eu", { alike: "neither has such a service" }),
  ],
  "api POST /v1/deploy/releases/{job}/approve": [
    ask("POST", ({ jobId }) => `/v1/deploy/releases/${jobId}/approve`, json({ wave: 1 })),
  ],
  "api GET /v1/repositories": [ask("GET", () => "/v1/repositories", { alike: "it names nothing" })],
  "api POST /v1/repositories": [
    ask("POST", () => "/v1/repositories", { ...json({ repository: "a/b", url: "/x" }), alike: "it is for operators" }),
  ],
  "api DELETE /v1/repositories/{owner}/{name}": [
    ask("DELETE", () => "/v1/repositories/a/b", { alike: "it is for operators" }),
  ],
  "api POST /v1/repositories/{owner}/{name}/dispatches": [
    ask("POST", () => "/v1/repositories/a/b/dispatches", { ...json({ workflow: "x" }), alike: "neither has such one" }),
  ],
  "api POST /v1/repositories/{owner}/{name}/events": [
    ask("POST", () => "/v1/repositories/a/b/events", {
      ...json({ id: "1", event: "push" }),
      alike: "neither has such one",
    }),
  ],
  "api GET /v1/repositories/{owner}/{name}/workflows": [
    ask("GET", () => "/v1/repositories/a/b/workflows", { alike: "neither has such one" }),
  ],
  "api POST /v1/repositories/{owner}/{name}/workflows/{workflow}/enable": [
    ask("POST", () => "/v1/repositories/a/b/workflows/x.yml/enable", { alike: "neither has such one" }),
  ],
  "api POST /v1/repositories/{owner}/{name}/workflows/{workflow}/disable": [
    ask("POST", () => "/v1/repositories/a/b/workflows/x.yml/disable", { alike: "neither has such one" }),
  ],
  "api GET /v1/repositories/{owner}/{name}/workflows/{workflow}/badge.svg": [
    ask("GET", () => "/v1/repositories/a/b/workflows/x.yml/badge.svg", { alike: "neither has such one" }),
  ],
  "api POST /v1/repositories/{owner}/{name}/hook": [
    ask("POST", () => "/v1/repositories/a/b/hook", { alike: "it is for operators" }),
  ],
  "api DELETE /v1/repositories/{owner}/{name}/hook": [
    ask("DELETE", () => "/v1/repositories/a/b/hook", { alike: "it is for operators" }),
  ],
  "api GET /v1/repositories/{owner}/{name}/deliveries": [
    ask("GET", () => "/v1/repositories/a/b/deliveries", { alike: "neither has any" }),
  ],
  "api GET /v1/repositories/{owner}/{name}/environments": [
    ask("GET", () => "/v1/repositories/a/b/environments", { alike: noRepository }),
  ],
  "api PUT /v1/repositories/{owner}/{name}/environments/{environment}": [
    ask("PUT", () => "/v1/repositories/a/b/environments/c", { ...json({}), alike: "it is for operators" }),
  ],
  "api DELETE /v1/repositories/{owner}/{name}/environments/{environment}": [
    ask("DELETE", () => "/v1/repositories/a/b/environments/c", { alike: "it is for operators" }),
  ],
  "api GET /v1/repositories/{owner}/{name}/deployments": [
    ask("GET", () => "/v1/repositories/a/b/deployments", { alike: noRepository }),
  ],
  "api GET /v1/runs/{run}/approvals": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/approvals`, { alike: "neither is a run" }),
  ],
  "api POST /v1/runs/{run}/approvals": [
    ask("POST", ({ jobId }) => `/v1/runs/${jobId}/approvals`, {
      ...json({ state: "approved" }),
      alike: "neither is a run",
    }),
  ],
  "api GET /v1/variables": [ask("GET", () => "/v1/variables", { alike: "it names nothing" })],
  "api PUT /v1/variables/{variable}": [
    ask("PUT", () => "/v1/variables/x", { ...json({ value: "forged" }), alike: "it is for operators" }),
  ],
  "api DELETE /v1/variables/{variable}": [ask("DELETE", () => "/v1/variables/x", { alike: "it is for operators" })],
  "api POST /v1/workflows:validate": [
    ask("POST", () => "/v1/workflows:validate", { ...json({ text: "on: push" }), alike: "it names nothing" }),
  ],
  "api GET /v1/runs": [ask("GET", () => "/v1/runs?limit=5", { alike: "it names nothing" })],
  "api GET /v1/runs/{run}": [ask("GET", ({ jobId }) => `/v1/runs/${jobId}`, { alike: "neither is a run" })],
  "api POST /v1/runs/{run}/cancel": [
    ask("POST", ({ jobId }) => `/v1/runs/${jobId}/cancel`, { alike: "neither is a run" }),
  ],
  "api POST /v1/runs/{run}/rerun": [
    ask("POST", ({ jobId }) => `/v1/runs/${jobId}/rerun`, { ...json({}), alike: "neither is a run" }),
  ],
  "api GET /v1/runs/{run}/jobs/{job}/log/search": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/jobs/t0-1/log/search?text=x`, { alike: "neither is a run" }),
  ],
  "api GET /v1/logs": [
    ask("GET", ({ key }) => `/v1/logs?text=${key}`, { alike: "there are none" }),
    ask("GET", ({ tenant }) => `/v1/logs?text=x&tenant=${tenant}`),
  ],
  "api GET /v1/runs/{run}/socket": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/socket`, { alike: "neither is a run" }),
  ],
  "api GET /v1/export/runs": [
    ask("GET", () => "/v1/export/runs", { alike: "it names nothing" }),
    ask("GET", ({ tenant }) => `/v1/export/runs?tenant=${tenant}`),
  ],
  "api GET /v1/artifacts": [
    ask("GET", ({ key }) => `/v1/artifacts?text=${key}`, { alike: "there are none" }),
    ask("GET", ({ tenant }) => `/v1/artifacts?tenant=${tenant}`),
  ],
  "api GET /v1/runs/{run}/tests": [ask("GET", ({ jobId }) => `/v1/runs/${jobId}/tests`, { alike: "neither is a run" })],
  "api GET /v1/repositories/{owner}/{name}/tests": [
    ask("GET", () => "/v1/repositories/a/b/tests", { alike: noRepository }),
  ],
  "api GET /v1/runs/{run}/jobs": [ask("GET", ({ jobId }) => `/v1/runs/${jobId}/jobs`, { alike: "neither is a run" })],
  "api GET /v1/runs/{run}/jobs/{job}": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/jobs/t0-1`, { alike: "neither is a run" }),
  ],
  "api GET /v1/runs/{run}/attempts": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/attempts`, { alike: "neither is a run" }),
  ],
  "api GET /v1/runs/{run}/jobs/{job}/attempts": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/jobs/t0-1/attempts`, { alike: "neither is a run" }),
  ],
  "api GET /v1/runners": [ask("GET", () => "/v1/runners?label=none", { alike: "it names nothing" })],
  "api GET /v1/runner-groups": [ask("GET", () => "/v1/runner-groups", { alike: "it names nothing" })],
  "api GET /v1/runs/{run}/why": [ask("GET", ({ jobId }) => `/v1/runs/${jobId}/why`, { alike: "neither is a run" })],
  "api GET /v1/runs/{run}/jobs/{job}/why": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/jobs/t0-1/why`, { alike: "neither is a run" }),
  ],
  "api GET /v1/runs/{run}/jobs/{job}/steps/{step}/why": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/jobs/t0-1/steps/0/why`, { alike: "neither is a run" }),
  ],
  "api GET /v1/runs/{run}/jobs/{job}/details": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/jobs/t0-1/details`, { alike: "neither is a run" }),
  ],
  "api GET /v1/runs/{run}/jobs/{job}/logs": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/jobs/t0-1/logs`, { alike: "neither is a run" }),
  ],
  "api GET /v1/runs/{run}/jobs/{job}/log.txt": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/jobs/t0-1/log.txt`, { alike: "neither is a run" }),
  ],
  "mount peers": [ask("GET", () => "/peers", clusterOnly("cluster.read"))],
  "api GET /v1/jobs/{job}/socket": [ask("GET", ({ jobId }) => `/v1/jobs/${jobId}/socket`)],
  "api GET /v1/cluster/watch": [
    {
      ...clusterOnly("cluster.read"),
      run: async (as) => ({ status: (await as.http("GET", "/v1/cluster/watch")).status }),
    },
  ],
  "api POST /v1/session": [
    { alike: "it names nothing", run: async (as) => ({ status: (await as.http("POST", "/v1/session")).status }) },
  ],
  "api DELETE /v1/session": [ask("DELETE", () => "/v1/session", clusterOnly("known"))],
  "api POST /v1/session/link": [
    { alike: "it names nothing", run: async (as) => ({ status: (await as.http("POST", "/v1/session/link")).status }) },
  ],
  "api PUT /v1/cluster/isolation/{shard}": [
    ask("PUT", () => "/v1/cluster/isolation/0", {
      ...operatorsOnly,
      init: { headers: { "content-type": "application/json" }, body: "{}" },
    }),
  ],
  "api DELETE /v1/cluster/isolation/{shard}": [ask("DELETE", () => "/v1/cluster/isolation/0", operatorsOnly)],
  "api PUT /v1/cluster/isolation/tenants/{tenant}": [
    ask("PUT", () => "/v1/cluster/isolation/tenants/anybody", {
      ...operatorsOnly,
      init: { headers: { "content-type": "application/json" }, body: '{"node":"nowhere"}' },
    }),
  ],
  "api DELETE /v1/cluster/isolation/tenants/{tenant}": [
    ask("DELETE", () => "/v1/cluster/isolation/tenants/anybody", operatorsOnly),
  ],
  "api GET /v1/node/drain": [ask("GET", () => "/v1/node/drain", clusterOnly("cluster.read"))],
  "api POST /v1/node/drain": [ask("POST", () => "/v1/node/drain", operatorsOnly)],
  "api DELETE /v1/node/drain": [ask("DELETE", () => "/v1/node/drain", operatorsOnly)],
  "api GET /v1/build-cache/stat": [
    {
      ...clusterOnly("cluster.read"),
      run: async (as) => ({ status: (await as.http("GET", "/v1/build-cache/stat")).status }),
    }, // its numbers grow
  ],
  "api GET /v1/build-cache/why": [
    ask("GET", ({ action }) => `/v1/build-cache/why?action=${action.hash}/${action.sizeBytes}`),
  ],
  "api GET /v1/build-cache/misses": [ask("GET", () => "/v1/build-cache/misses", { alike: "it names nothing" })],
  "api GET /v1/build-cache/entries": [
    ask("GET", () => "/v1/build-cache/entries", { alike: "it names nothing" }),
    ask("GET", ({ key }) => `/v1/build-cache/entries?after=${key}`, { alike: "both are places in the list" }),
  ],
  "api GET /v1/build-cache/blobs/{digest+}": [ask("GET", (named) => `/v1/build-cache/blobs/${digest(named)}`)],
  "api PUT /v1/build-cache/blobs/{digest+}": [
    ask("PUT", (named) => `/v1/build-cache/blobs/${digest(named)}`, {
      ...body,
      alike: "bytes that do not fit are refused",
    }),
  ],
  "api POST /v1/build-cache/gc": [ask("POST", () => "/v1/build-cache/gc?downTo=0", operatorsOnly)],
  "api POST /v1/build-cache/verify": [ask("POST", () => "/v1/build-cache/verify", operatorsOnly)],
  "api GET /v1/build-cache/rules": [ask("GET", () => "/v1/build-cache/rules", { alike: "it names nothing" })],
  "api POST /v1/build-cache/rules": [ask("POST", () => "/v1/build-cache/rules", { alike: "it names nothing" })],
  "api DELETE /v1/build-cache/rules/{id}": [ask("DELETE", ({ rule }) => `/v1/build-cache/rules/${rule}`)],
  "api GET /v1/builds": [ask("GET", ({ buildsPage }) => `/v1/builds?limit=5&cursor=${buildsPage}`)],
  "api POST /v1/builds": [ask("POST", () => "/v1/builds", { ...body, alike: "that is no build" })],
  "api GET /v1/builds/{build}": [ask("GET", ({ build }) => `/v1/builds/${build}`)],
  "api GET /v1/builds/{build}/watch": [ask("GET", ({ build }) => `/v1/builds/${build}/watch`)],
  "api POST /v1/builds/{build}/cancel": [ask("POST", ({ build }) => `/v1/builds/${build}/cancel`)],
  "api GET /v1/builds/{build}/actions/{key+}": [ask("GET", ({ build }) => `/v1/builds/${build}/actions/slow`)],
  "api GET /v1/why": [
    ask("GET", ({ jobId }) => `/v1/why?of=${jobId}`),
    ask("GET", ({ operation }) => `/v1/why?of=${operation}`),
    ask("GET", ({ endedOperation }) => `/v1/why?of=${endedOperation}`),
    ask("GET", ({ build }) => `/v1/why?of=${build}&key=slow`),
    ask("GET", ({ action }) => `/v1/why?of=${action.hash}/${action.sizeBytes}`),
  ],
  "api GET /v1/runs/{run}/artifacts": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/artifacts`, { alike: "neither has artifacts" }),
  ],
  "api GET /v1/runs/{run}/artifacts/{name}": [
    ask("GET", ({ jobId }) => `/v1/runs/${jobId}/artifacts/x`, { alike: "neither has artifacts" }),
  ],
  "api DELETE /v1/runs/{run}/artifacts/{name}": [
    ask("DELETE", ({ jobId }) => `/v1/runs/${jobId}/artifacts/x`, { alike: "neither has artifacts" }),
  ],
  "api GET /v1/caches": [ask("GET", () => "/v1/caches?repository=a/b", { alike: "neither has caches" })],
  "api DELETE /v1/caches": [ask("DELETE", () => "/v1/caches?repository=a/b&key=x", { alike: "neither has caches" })],
  "actions twirp": [
    ask("POST", () => "/twirp/github.actions.results.api.v1.ArtifactService/ListArtifacts", {
      ...json({}),
      alike: jobsOnly,
    }),
  ],
  "actions cache-v1": [
    ask("GET", ({ key }) => `/_apis/artifactcache/cache?keys=${key}&version=1`, { alike: jobsOnly }),
  ],
  "actions files": [
    ask("GET", ({ tenant }) => `/ci/files/download/${tenant}/artifact.1/x?se=99999999999999&sig=x`, {
      alike: "only a signed address leads anywhere",
    }),
  ],
  "actions hooks": [
    ask("POST", ({ tenant }) => `/ci/hooks/${tenant}/a/b`, {
      init: { body: "{}", headers: { "x-github-event": "push", "x-github-delivery": "1" } },
      alike: "only what is signed is taken",
    }),
  ],
  "actions id-token": [ask("GET", () => "/_apis/oidc/token?audience=x", { alike: jobsOnly })],
  "actions rest": [ask("GET", () => "/api/v3/repos/a/b", { alike: jobsOnly })],
  "actions git": [
    ask("GET", () => "/a/b/info/refs?service=git-upload-pack", { alike: "neither has such a repository" }),
    ask("POST", () => "/a/b/git-receive-pack", { ...body, alike: "neither has such a repository" }),
  ],
  "caches ccache": entry((key) => `/ccache/${key}`, "may"),
  "caches sccache": [
    ask("PROPFIND", ({ key }) => `/sccache/a/b/c/${key}`),
    ask("PROPFIND", () => "/sccache/a/b/c/", {
      init: { headers: { depth: "1" } },
      alike: "it names nothing of mill's",
    }),
    ...entry((key) => `/sccache/a/b/c/${key}`, "may"),
  ],
  "caches gradle": entry((key) => `/gradle/${key}`, "may").filter(({ what }) => what !== "DELETE"),
  "caches turborepo": [
    ask("POST", () => "/v8/artifacts?slug=team", {
      init: { body: JSON.stringify({ hashes: [] }) },
      alike: "it names nothing",
    }),
    ...entry((key) => `/v8/artifacts/${key}?slug=team`, "may").filter(({ what }) => what !== "DELETE"),
  ],
  "caches nx": entry((key) => `/v1/cache/${key}`, "once"),
  "caches bazel": [
    ask("GET", ({ ac }) => `/cas/${ac}`),
    ask("HEAD", ({ ac }) => `/cas/${ac}`),
    ask("GET", ({ key }) => `/ac/${key}`),
    ask("PUT", ({ key }) => `/ac/${key}`, { init: { body: "" }, alike: "it may write both" }),
    ask("PUT", ({ ac }) => `/cas/${ac}`, { ...body, alike: "bytes that do not fit are refused" }),
  ],
};
