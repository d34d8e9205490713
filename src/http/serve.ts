/**
 * Serves a table of routes: browser defence, who calls, policy, validation, handler, answer. Every route passes the
 * same steps in the same order; a handler sees only calls that passed all of them.
 */
import type { Clock } from "#base/clock.ts";
import { chooseTenant, unknownCaller, type CallerResult } from "#access/caller.ts";
import type { Refusal } from "#access/refusal.ts";
import { bodyBytes, bodyIdleMsDefault, bodyParts, parseFields, parseJsonBody, requireJson } from "./body.ts";
import { browserProblem } from "./defence.ts";
import { isMany, type EndpointDeclaration } from "./endpoint.ts";
import { once, type KeptAnswers } from "./idempotency.ts";
import { asProblem, Problem, problemResponse, refusalProblem } from "./problem.ts";
import { respond } from "./respond.ts";
import type { Call, Route } from "./route.ts";
import { Router, type Found } from "./router.ts";
import { eventsType } from "./live/sse.ts";

export type Identify = (request: Request) => Promise<CallerResult>;

export type HttpPorts = {
  readonly clock: Clock;
  readonly kept: KeptAnswers;
  readonly report: (endpoint: string, error: unknown) => void;
  /** Errors of the rooms below, which this room does not know. */
  readonly asProblem?: (error: unknown) => Problem | undefined;
  /** For metrics: `endpoint` is its name, never the path of the request. */
  readonly ended?: (call: { readonly endpoint: string; readonly status: number; readonly tookMs: number }) => void;
  readonly heartbeatMs?: number;
  readonly bodyIdleMs?: number;
};

const heartbeatMsDefault = 15_000;

/** Answers undefined for a path that no route has. */
export type Serve = (request: Request, identify: Identify) => Promise<Response> | undefined;

export function serveRoutes(routes: readonly Route[], ports: HttpPorts): Serve {
  const router = new Router(routes);
  return (request, identify) => {
    const url = new URL(request.url);
    const found = streamIfAccepted(router, request, url);
    if (found.kind === "none") return undefined;
    if (found.kind === "method") return Promise.resolve(problemResponse(wrongMethod(request.method, found.allow)));
    return timed(found.route, ports, () => answer({ request, url, identify, ...found }, ports));
  };
}

/**
 * Who accepts a stream of events gets it at the address of the list, too. An address that is a stream itself stays what
 * it is: /v1/jobs/watch with another /watch behind it would be the stream of a job named "watch".
 */
function streamIfAccepted(router: Router<Route>, { method, headers }: Request, { pathname }: URL): Found<Route> {
  const found = router.find(method, pathname);
  if (method !== "GET" || headers.get("accept") !== eventsType) return found;
  if (found.kind !== "route" || found.route.answer.kind !== "json") return found;
  const live = router.find(method, `${pathname}/watch`);
  return live.kind === "route" && live.route.answer.kind === "events" ? live : found;
}

type FoundRoute = {
  readonly request: Request;
  readonly url: URL;
  readonly identify: Identify;
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
};

async function timed(route: Route, ports: HttpPorts, run: () => Promise<Response>): Promise<Response> {
  const startedMs = ports.clock.monotonicMs();
  let response: Response;
  try {
    response = await run();
  } catch (error) {
    const { problem, isOurs } = asProblem(ports.asProblem?.(error) ?? error);
    if (isOurs) ports.report(route.name, error);
    response = problemResponse(problem);
  }
  const tookMs = ports.clock.monotonicMs() - startedMs;
  ports.ended?.({ endpoint: route.name, status: response.status, tookMs });
  return response;
}

async function answer(found: FoundRoute, ports: HttpPorts): Promise<Response> {
  return await handled(await judge(found), found, ports);
}

/** Everything before the handler: the call, or the Problem that refuses it. */
export async function judge(
  found: Omit<FoundRoute, "url"> & { readonly isUpgrade?: boolean },
): Promise<Omit<Call<EndpointDeclaration>, "body">> {
  const { request, route, isUpgrade = false } = found;
  const url = new URL(request.url);
  const who = await found.identify(request);
  const proof = who.ok ? who.caller.principal.proof : "anonymous";
  const proven = { isProven: proof !== "anonymous", hasSession: proof === "session" };
  const why = browserProblem({ method: request.method, url, headers: request.headers, ...proven, isUpgrade });
  if (why !== undefined) throw new Problem(403, why);
  const caller = who.ok ? who.caller : unknownCaller(route.action);
  if (!caller) throw refusalProblem((who as { readonly refusal: Refusal }).refusal);
  const { tenant: named, ...rest } = queryOf(url, route);
  const chosen = chooseTenant(caller, route.action, named);
  if (!chosen.ok) throw refusalProblem(chosen.refusal);
  return {
    caller,
    tenant: chosen.tenant,
    params: route.params ? parseFields("path", route.params, found.params) : {},
    query: parseQuery(route, rest),
    headers: request.headers,
    url,
    signal: request.signal,
  };
}

async function handled(
  call: Omit<Call<EndpointDeclaration>, "body">,
  { request, url, route }: FoundRoute,
  ports: HttpPorts,
): Promise<Response> {
  const { clock, heartbeatMs = heartbeatMsDefault, bodyIdleMs = bodyIdleMsDefault } = ports;
  const handle = async (body: unknown): Promise<Response> =>
    respond(route, request, await route.handle({ ...call, body } as Call<EndpointDeclaration>), { clock, heartbeatMs });
  const key = request.headers.get("idempotency-key");
  if (route.body?.kind === "bytes") {
    if (key !== null) throw new Problem(400, "idempotency-key: this call has no key; its effect is the same each time");
    return await handle(bodyParts(request, { bytesMax: route.body.bytesMax, idleMs: bodyIdleMs }, clock));
  }
  const bytesMax = route.body?.bytesMax ?? 0;
  const bytes = await bodyBytes(request, { bytesMax, idleMs: bodyIdleMs }, clock);
  if (route.body) requireJson(request.headers);
  const body = route.body ? parseJsonBody(bytes, route.body.schema) : undefined;
  if (route.idempotency === "handler") return await handle(body);
  const isKept = route.answer.kind === "json" || route.answer.kind === "none";
  if (key !== null && !isKept) throw new Problem(400, "idempotency-key: this call streams its answer and has no key");
  if (key === null || request.method === "GET" || request.method === "HEAD") return await handle(body);
  const keyed = {
    tenant: call.tenant,
    principal: call.caller.principal.name,
    endpoint: route.name,
    path: `${url.pathname}${url.search}`,
    body: bytes,
  };
  return await once(
    ports.kept,
    key,
    keyed,
    () => handle(body),
    (error) => ports.report(route.name, error),
  );
}

/**
 * `tenant` belongs to every call, so no endpoint declares it. A parameter that is given twice is refused, unless it is
 * a list (`many`).
 */
function queryOf({ searchParams }: URL, { query }: Route): Record<string, unknown> & { readonly tenant?: string } {
  const fields: Record<string, unknown> = {};
  for (const name of new Set(searchParams.keys())) {
    const [value, ...others] = searchParams.getAll(name);
    const isList = Object.hasOwn(query?.shape ?? {}, name) && isMany(query?.shape[name]);
    if (others.length > 0 && !isList) throw new Problem(400, `query.${name.slice(0, 100)}: given twice`);
    Object.defineProperty(fields, name, { value: isList ? [value, ...others] : value, enumerable: true });
  }
  return fields;
}

function parseQuery(route: Route, given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { lastEventId: _resume, ...fields } = given; // for EventSource, which cannot set a header
  const known = Object.keys(route.query?.shape ?? {});
  const unknown = Object.keys(fields).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new Problem(
      400,
      `query.${unknown.slice(0, 100)}: not a parameter of this call` +
        (known.length > 0 ? `; it has ${known.join(", ")}` : ""),
    );
  return route.query ? parseFields("query", route.query, fields) : {};
}

const wrongMethod = (method: string, allow: readonly string[]): Problem =>
  new Problem(405, `${method.slice(0, 20)} is not served at this address; ${allow.join(", ")} is`, {
    headers: { allow: [...allow, ...(allow.includes("GET") ? ["HEAD"] : [])].join(", ") },
  });
