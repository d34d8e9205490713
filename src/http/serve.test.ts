import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { principal } from "#access/principal.ts";
import { unauthenticated } from "#access/refusal.ts";
import { Fault, isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { callEndpoint } from "./client.ts";
import { decodeCursor, encodeCursor, pageFields, pageOf } from "./cursor.ts";
import { endpoint, events, json, jsonBody, lines, none } from "./endpoint.ts";
import { memoryEntries } from "#base/memory-entries.ts";
import { keptAnswersIn } from "./kept-answers.ts";
import { Problem } from "./problem.ts";
import { route } from "./route.ts";
import { serveRoutes, type Identify } from "./serve.ts";
import { lastEventId } from "./live/sse.ts";

const Job = z.object({ job: z.string(), tenant: z.string() });
const listJobs = endpoint({
  method: "GET",
  path: "/v1/jobs",
  action: "work.read",
  about: "Lists jobs.",
  query: z.object(pageFields),
  answer: json(pageOf(Job)),
});
const submitJob = endpoint({
  method: "POST",
  path: "/v1/jobs",
  action: "work.submit",
  about: "Submits a job.",
  body: jsonBody(z.strictObject({ name: z.string().max(20) }), 200),
  answer: json(Job, 202),
});
const watchJob = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/events",
  action: "work.read",
  about: "Follows a job.",
  params: z.object({ job: z.string().max(10) }),
  answer: events(z.object({ n: z.number() })),
});
const exportJobs = endpoint({
  method: "GET",
  path: "/v1/jobs:export",
  action: "work.read",
  about: "Exports jobs.",
  answer: lines(Job),
});
const drain = endpoint({
  method: "DELETE",
  path: "/v1/drain",
  action: "cluster.admin",
  about: "Ends it.",
  answer: none,
});

const jsonType = { "content-type": "application/json" };
const clock = new ManualClock();
const member = principal({ name: "ann", tenant: "acme", roles: ["member"] }, "token");
const operator = principal({ name: "ops", tenant: "*", roles: ["operator"] }, "token");
const as =
  (who: typeof member): Identify =>
  () =>
    Promise.resolve({ ok: true, caller: { principal: who, address: "127.0.0.1", untilMs: Infinity, isTls: false } });

async function* countFrom(job: string, seen = "-1") {
  for (let n = Number(seen) + 1; n < 3; n += 1) yield { id: String(n), event: job, data: { n } };
}

function open() {
  const reported: unknown[] = [];
  let submitted = 0;
  const serve = serveRoutes(
    [
      route(listJobs, ({ query, tenant }) => {
        const from = query.cursor === undefined ? 0 : decodeCursor(query.cursor, z.number());
        const items = [1, 2, 3].slice(from, from + query.limit).map((n) => ({ job: `j${n}`, tenant }));
        const next = from + query.limit;
        return { body: { items, ...(next < 3 && { next: encodeCursor(next) }) } };
      }),
      route(submitJob, ({ body, tenant }) => {
        if (body.name === "boom") throw new Error("secret detail");
        if (body.name === "full") throw new Fault("exhausted", "submit job");
        submitted += 1;
        return { body: { job: `j${submitted}`, tenant } };
      }),
      route(watchJob, ({ params, headers, url }) => ({ body: countFrom(params.job, lastEventId(headers, url)) })),
      route(exportJobs, ({ tenant }) => ({
        body: (async function* () {
          yield { job: "j1", tenant };
          yield { job: "j2", tenant };
        })(),
      })),
      route(drain, () => undefined),
    ],
    {
      clock,
      kept: keptAnswersIn(
        memoryEntries(() => clock.wallMs()),
        { keptMs: 1_000, busyMs: 100, tenantMax: 10 },
      ),
      report: (_endpoint, error) => reported.push(error),
    },
  );
  const ask = async (path: string, init: RequestInit = {}, who = member): Promise<Response> => {
    const response = await serve(new Request(`http://127.0.0.1${path}`, init), as(who));
    ok(response, `no route for ${path}`);
    return response;
  };
  const post = (name: string, headers: Record<string, string> = {}) =>
    ask("/v1/jobs", { method: "POST", body: JSON.stringify({ name }), headers: { ...jsonType, ...headers } });
  return { serve, ask, post, reported, submitted: () => submitted };
}

const title = async (response: Response): Promise<string> => ((await response.json()) as { title: string }).title;

describe("a table of routes", () => {
  test("answers with the caller's tenant; an operator may name another, a member may not", async () => {
    const { ask } = open();
    deepEqual(await (await ask("/v1/jobs?limit=1")).json(), { items: [{ job: "j1", tenant: "acme" }], next: "MQ" });
    const other = await ask("/v1/jobs?tenant=other", {}, operator);
    deepEqual(((await other.json()) as { items: { tenant: string }[] }).items[0]?.tenant, "other");
    equal((await ask("/v1/jobs?tenant=other")).status, 403);
    equal((await ask("/v1/drain", { method: "DELETE" })).status, 403);
    equal((await ask("/v1/drain", { method: "DELETE" }, operator)).status, 204);
  });

  test("refuses a caller without credentials before it validates anything", async () => {
    const { serve } = open();
    const refuse: Identify = () => Promise.resolve(unauthenticated("credentials-missing"));
    const response = await serve(new Request("http://127.0.0.1/v1/jobs?nonsense=1"), refuse);
    equal(response?.status, 401);
    equal(response?.headers.get("www-authenticate"), "Bearer");
  });

  test("says which field of which part is wrong", async () => {
    const { ask } = open();
    const cases: readonly [string, RequestInit, number, RegExp][] = [
      ["/v1/jobs?limit=0", {}, 400, /^query\.limit: /],
      ["/v1/jobs?limt=3", {}, 400, /^query\.limt: not a parameter of this call; it has limit, cursor/],
      ["/v1/jobs?limit=1&limit=2", {}, 400, /^query\.limit: given twice/],
      ["/v1/jobs?__proto__=1", {}, 400, /^query\.__proto__: not a parameter/],
      ["/v1/jobs?cursor=bm9wZQ", {}, 400, /^cursor: this is no cursor/],
      ["/v1/jobs", { method: "POST", body: "{", headers: jsonType }, 400, /^body: not JSON/],
      ["/v1/jobs", { method: "POST", body: '{"name":3}', headers: jsonType }, 400, /^body\.name: /],
      ["/v1/jobs", { method: "POST", body: '{"name":"x","more":1}', headers: jsonType }, 400, /^body: .*more/],
      [
        "/v1/jobs",
        { method: "POST", body: `{"name":"${"x".repeat(300)}"}`, headers: jsonType },
        413,
        /more than 200 bytes/,
      ],
      ["/v1/jobs", { method: "POST", body: "a=b", headers: { "content-type": "text/plain" } }, 415, /send JSON/],
      ["/v1/jobs", { method: "PUT" }, 405, /PUT is not served at this address; GET, POST is/],
      ["/v1/jobs/12345678901/events", {}, 400, /^path\.job: /],
    ];
    for (const [path, init, status, text] of cases) {
      const response = await ask(path, init);
      equal(response.status, status, path);
      equal(response.headers.get("content-type"), "application/problem+json");
      match(await title(response), text);
    }
  });

  test("an unknown path is left to others", () => {
    equal(open().serve(new Request("http://127.0.0.1/v1/nothing"), as(member)), undefined);
  });

  test("keeps the details of internal errors for the log", async () => {
    const { post, reported } = open();
    const response = await post("boom");
    equal(response.status, 500);
    match(await title(response), /^internal error/);
    equal((reported[0] as Error).message, "secret detail");
  });

  test("HEAD is GET without a body, and an unchanged answer is 304", async () => {
    const { ask } = open();
    const head = await ask("/v1/jobs", { method: "HEAD" });
    equal(await head.text(), "");
    const etag = head.headers.get("etag") ?? "";
    equal((await ask("/v1/jobs", { headers: { "if-none-match": `W/"x", ${etag}` } })).status, 304);
    equal((await ask("/v1/jobs?limit=1", { headers: { "if-none-match": etag } })).status, 200);
  });
});

describe("an idempotency key", () => {
  const key = { "idempotency-key": "k1" };

  test("gives a repeated request the first answer and no second effect", async () => {
    const { post, submitted } = open();
    const [first, again] = [await post("a", key), await post("a", key)];
    deepEqual(await first.json(), await again.json());
    deepEqual([first.status, again.status, submitted()], [202, 202, 1]);
    equal(again.headers.get("idempotency-replayed"), "true");
  });

  test("is refused with another body, and free again after its time", async () => {
    const { post, submitted } = open();
    await post("a", key);
    equal((await post("b", key)).status, 422);
    await clock.advance(1_001);
    equal((await post("b", key)).status, 202);
    equal(submitted(), 2);
  });

  test("is free again after a failure of ours", async () => {
    const { post, submitted } = open();
    equal((await post("full", key)).status, 429);
    equal((await post("full", key)).status, 429);
    equal((await post("a", key)).status, 202);
    equal(submitted(), 1);
  });
});

describe("a client made from the declarations", () => {
  test("walks pages, submits, reads lines, and turns problems into faults", async () => {
    const { ask } = open();
    const seen: string[] = [];
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const page = await callEndpoint(ask, listJobs, { query: { limit: 2, ...(cursor !== undefined && { cursor }) } });
      seen.push(...page.items.map(({ job }) => job));
      cursor = page.next;
    }
    deepEqual(seen, ["j1", "j2", "j3"]);
    equal((await callEndpoint(ask, submitJob, { body: { name: "x" }, idempotencyKey: "k" })).tenant, "acme");
    deepEqual(
      (await Array.fromAsync(await callEndpoint(ask, exportJobs, {}))).map(({ job }) => job),
      ["j1", "j2"],
    );
    const followed = await callEndpoint(ask, watchJob, { params: { job: "j1" }, lastEventId: "0" });
    deepEqual(await Array.fromAsync(followed), [
      { id: "1", event: "j1", data: { n: 1 } },
      { id: "2", event: "j1", data: { n: 2 } },
    ]);
    const failed = await callEndpoint(ask, listJobs, { tenant: "other" }).catch((error: unknown) => error);
    ok(isFault(failed, "invalid") && failed.facts["status"] === 403);
  });
});

test("a Problem thrown by a handler is the answer", async () => {
  const serve = serveRoutes(
    [
      route(drain, () => {
        throw new Problem(409, "not now");
      }),
    ],
    {
      clock,
      kept: keptAnswersIn(memoryEntries(() => 0)),
      report: () => {},
    },
  );
  const response = await serve(new Request("http://127.0.0.1/v1/drain", { method: "DELETE" }), as(operator));
  equal(response?.status, 409);
});
