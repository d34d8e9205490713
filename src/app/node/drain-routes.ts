/** /api/node/drain: GET shows the state, POST begins, DELETE undoes. For operators. */
import { isFault } from "#base/fault.ts";
import { parseDurationMs } from "#base/units.ts";
import type { Admission } from "#edge/port/admission.ts";
import type { Action } from "#access/policy.ts";
import type { Peer } from "#edge/port/port.ts";
import { problem, refused } from "#edge/problem.ts";
import type { ServeElsewhere } from "#edge/port/routes.ts";
import type { Drain, DrainView } from "./drain.ts";

export const drainPath = "/api/node/drain";

/** The time limit of a drain that names none. */
const withinMsDefault = 10 * 60_000;
const withinMsMax = 7 * 86_400_000;

export function drainRoute(admission: Admission, drain: Drain): ServeElsewhere {
  return (request, peer) => {
    const url = new URL(request.url);
    return url.pathname === drainPath ? answer(request, url.searchParams, peer, admission, drain) : undefined;
  };
}

const needs: Readonly<Record<string, Action>> = {
  GET: "cluster.read",
  HEAD: "cluster.read",
  POST: "cluster.admin",
  DELETE: "cluster.admin",
};

async function answer(
  request: Request,
  query: URLSearchParams,
  peer: Peer,
  admission: Admission,
  drain: Drain,
): Promise<Response> {
  const action = needs[request.method];
  if (!action) return problem(405, "only GET, POST and DELETE are allowed here", { allow: "GET, POST, DELETE" });
  const judged = await admission.judge(peer, request.headers, action);
  if (!judged.ok) return refused(judged.refusal);
  try {
    return await act(request.method, query, drain);
  } catch (error) {
    if (isFault(error, "stale")) return problem(409, String(error.facts["why"]));
    throw error;
  }
}

async function act(method: string, query: URLSearchParams, drain: Drain): Promise<Response> {
  if (method === "DELETE") return shown(await drain.resume());
  if (method !== "POST") return shown(drain.view());
  const wrong = [...query.keys()].find((name) => name !== "within" && name !== "leave");
  if (wrong !== undefined) return problem(400, `unknown parameter ${wrong}: only within and leave are allowed`);
  const within = query.get("within");
  const withinMs = within === null ? withinMsDefault : parseDurationMs(within);
  if (withinMs === undefined || withinMs > withinMsMax)
    return problem(400, 'within: write a number and a unit, such as "10m", of at most 7d');
  const leave = query.get("leave") ?? "true";
  if (leave !== "true" && leave !== "false") return problem(400, "leave: write true or false");
  return shown(drain.begin({ withinMs, leave: leave === "true" }), 202);
}

const shown = (view: DrainView, status = 200): Response =>
  Response.json(view, { status, headers: { "cache-control": "no-store" } });
