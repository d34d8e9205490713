// The table of routes and all that is made from it: one route for each endpoint, a policy row for each, and an OpenAPI
// document that other programs can read.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { z } from "zod";
import { policy } from "#access/policy.ts";
import { apiDocument, apiEndpoints, type ApiParts, apiRoutes } from "#app/compose/api.ts";
import { doors } from "#app/doors.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { buildTable, type TablePorts } from "#doors/build/http/table.ts";
import { batchRoutes } from "#doors/batch/routes.ts";
import { intakeRoutes } from "#doors/ci/intake/routes.ts";
import { environmentRoutes } from "#doors/ci/environments/routes.ts";
import { ciRoutes } from "#doors/ci/routes.ts";
import { secretRoutes } from "#doors/ci/secrets/routes.ts";
import { serviceRoutes } from "#doors/ci/services/routes.ts";
import { exportRoutes } from "#doors/ci/export/routes.ts";
import { listRoutes } from "#doors/ci/lists/routes.ts";
import { testRoutes } from "#doors/ci/tests/routes.ts";
import { deployRoutes } from "#doors/deploy/routes.ts";
import { endpoint, json } from "#http/endpoint.ts";
import { openApiDocument, operationId } from "#http/openapi.ts";
import { httpReference } from "#http/reference.ts";
import { Router } from "#http/router.ts";
import { movedTo } from "./moved.ts";

/** Routes are made of ports that nothing calls here. */
const nothing = {} as never;
const tablePorts = { settings: { blobBytesMax: 1 }, execution: {}, builds: {}, upkeep: {} } as unknown as TablePorts;
const own = {
  name: "n",
  work: nothing,
  clock,
  log: nothing,
  entries: nothing,
  drain: nothing,
  isolation: nothing,
  isolatedTenants: nothing,
  hotShards: nothing,
  vaults: nothing,
  schedules: nothing,
  effects: nothing,
  issuer: nothing,
  feed: nothing,
  webhooks: nothing,
  artifacts: nothing,
  checkpoints: nothing,
  registry: nothing,
  pools: nothing,
  keeps: nothing,
  records: nothing,
  audit: nothing,
  status: nothing,
};
const ofJobs = {
  live: nothing,
  blobs: nothing,
  printed: nothing,
  bounds: nothing,
  kinds: nothing,
  resultsKeptMs: nothing,
};
const routes = [
  ...buildTable(tablePorts),
  ...batchRoutes({ client: nothing }),
  ...deployRoutes(nothing),
  ...ciRoutes(nothing),
  ...intakeRoutes(nothing),
  ...listRoutes(nothing),
  ...serviceRoutes(nothing, nothing),
  ...secretRoutes(nothing),
  ...environmentRoutes(nothing),
  ...testRoutes(nothing),
  ...exportRoutes(nothing),
];
// every part: a part that is left out serves nothing, and the first test below would not see its routes
const served = apiRoutes({ ...own, ...ofJobs, routes, doors } satisfies Required<ApiParts>, nothing);

test("what is served and what is declared are the same", () => {
  const names = (list: readonly { readonly name: string }[]): readonly string[] =>
    list.map(({ name }) => name).toSorted();
  deepEqual(names(served), names(apiEndpoints));
  equal(new Set(names(served)).size, served.length);
  ok(new Router(served));
});

test("every endpoint names a row of the policy; one without does not compile", () => {
  for (const { name, action } of apiEndpoints) ok(action in policy, name);
  // @ts-expect-error -- no `action`: this line is the proof that it does not compile
  endpoint({ method: "GET", path: "/v1/x", about: "x", answer: json(z.object({})) });
  // @ts-expect-error -- no such row
  endpoint({ method: "GET", path: "/v1/x", action: "anything", about: "x", answer: json(z.object({})) });
});

test("everything is under /v1, or where others look for it, and nothing where Nx keeps its cache", () => {
  for (const { path, name } of apiEndpoints) {
    match(path, /^\/(v1|\.well-known|api\/v3)\/[a-z]/, name);
    ok(!/^\/v1\/cache(\/|$)/.test(path), name);
  }
});

type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
};

test("the OpenAPI document has every endpoint, and is valid OpenAPI 3.1", async () => {
  const document = apiDocument() as Document;
  for (const one of apiEndpoints)
    equal(
      document.paths[one.path.replace("+}", "}")]?.[one.method.toLowerCase()]?.operationId,
      operationId(one),
      one.name,
    );
  const all = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  equal(all.length, apiEndpoints.length);
  equal(new Set(all.map((one) => one.operationId)).size, all.length, "operation ids are unique");
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document));
  ok(valid, JSON.stringify(errors, null, 2));
  equal(validator.version, "3.1");
});

test("the check of the document finds what is wrong in one", async () => {
  const document = openApiDocument([], { title: "t", version: "1", description: "d" }) as Record<string, unknown>;
  const wrong = { ...document, paths: { "/x": { get: { responses: { ok: "yes" } } } } };
  equal((await new Validator().validate(wrong)).valid, false);
});

test("the reference has every endpoint with who may call it", () => {
  const text = httpReference(apiEndpoints);
  for (const { name, about } of apiEndpoints) ok(text.includes(`### \`${name}\``) && text.includes(about), name);
});

test("old addresses lead to new ones with their query", () => {
  const to = (path: string): string | null | undefined =>
    movedTo(new Request(`http://x${path}`))?.headers.get("location");
  equal(to("/api/builds/j0-1/watch?a=1"), "/v1/builds/j0-1/watch?a=1");
  equal(to("/api/cache/blobs/ab/1"), "/v1/build-cache/blobs/ab/1");
  equal(to("/api/node/drain?within=1m"), "/v1/node/drain?within=1m");
  equal(to("/api/login"), "/v1/session/link");
  equal(to("/api/buildsx"), undefined);
  equal(to("/api/other"), undefined);
});
