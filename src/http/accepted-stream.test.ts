import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { principal } from "#access/principal.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryEntries } from "#base/memory-entries.ts";
import { endpoint, events, json } from "./endpoint.ts";
import { keptAnswersIn } from "./kept-answers.ts";
import { route } from "./route.ts";
import { serveRoutes } from "./serve.ts";

const Name = z.object({ name: z.string() });
const get = (path: string) =>
  ({
    method: "GET",
    path,
    action: "work.read",
    about: "Names itself.",
    params: z.object(path.includes("{job}") ? { job: z.string() } : {}),
  }) as const;
const shown = (path: string) => route(endpoint({ ...get(path), answer: json(Name) }), () => ({ body: { name: path } }));
const watched = (path: string) =>
  route(endpoint({ ...get(path), answer: events(Name) }), () => ({ body: nameOnce(path) }));
async function* nameOnce(name: string) {
  yield { data: { name } };
}

const serve = serveRoutes(
  [
    ...["/v1/jobs", "/v1/jobs/{job}", "/v1/jobs/{job}/why"].map(shown),
    ...["/v1/jobs/watch", "/v1/jobs/{job}/watch"].map(watched),
  ],
  {
    clock: new ManualClock(),
    kept: keptAnswersIn(
      memoryEntries(() => 0),
      { keptMs: 1, busyMs: 1, tenantMax: 1 },
    ),
    report: () => {},
  },
);
const caller = {
  principal: principal({ name: "ann", tenant: "acme", roles: ["member"] }, "token"),
  address: "127.0.0.1",
  untilMs: Infinity,
  isTls: false,
};

for (const [path, served] of [
  ["/v1/jobs", "/v1/jobs/watch"],
  ["/v1/jobs/watch", "/v1/jobs/watch"],
  ["/v1/jobs/j1", "/v1/jobs/{job}/watch"],
  ["/v1/jobs/j1/watch", "/v1/jobs/{job}/watch"],
  ["/v1/jobs/j1/why", "/v1/jobs/{job}/why"],
] as const)
  test(`who accepts a stream of events at ${path} gets ${served}`, async () => {
    const request = new Request(`http://127.0.0.1${path}`, { headers: { accept: "text/event-stream" } });
    const response = await serve(request, () => Promise.resolve({ ok: true, caller }));
    const name = /"name":"([^"]*)"/.exec((await response?.text()) ?? "")?.[1];
    deepEqual([response?.status, name], [200, served]);
  });
