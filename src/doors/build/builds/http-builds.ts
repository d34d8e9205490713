/**
 * Builds over HTTP, for clients without gRPC: JSON under /api/builds.
 *
 * POST /api/builds a document; Idempotency-Key names the request; ?priority=
 * GET /api/builds ?limit=&cursor=
 * GET /api/builds/ID with all of its actions
 * GET /api/builds/ID/watch one JSON object per line until it has ended
 * GET /api/builds/ID/actions/KEY what it made
 * POST /api/builds/ID/cancel ?reason=
 */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import { detailsOf, grpcCode, GrpcError } from "#grpc/status.ts";
import { PreconditionFailure } from "#wire/generated/google/rpc/error_details.ts";
import { need, type BuildCaller } from "#doors/build/caller.ts";
import { refusalOfInputs } from "#doors/build/execute/execution-refusals.ts";
import type { CallRefusal } from "#doors/build/http/caller.ts";
import { asRefusal, decoded, HttpRefusal, methodNotAllowed } from "#doors/build/http/refusal.ts";
import { BuildDocument, buildOf, type FindFile } from "./document.ts";
import { buildLimits } from "./limits.ts";
import type { BuildsCall, BuildsService } from "./service.ts";
import { buildWords, newsWords, phaseName, reportWords } from "./words.ts";

export type HttpBuildsPorts = {
  readonly service: BuildsService;
  readonly caller: (request: Request) => Promise<{ readonly caller: BuildCaller } | { readonly refused: CallRefusal }>;
  readonly report: (error: unknown) => void;
};

export const buildsPrefix = "/api/builds";

/** Undefined for other paths. */
export function httpBuilds(ports: HttpBuildsPorts): (request: Request) => Promise<Response> | undefined {
  return (request) => {
    const url = new URL(request.url);
    const isOurs = url.pathname === buildsPrefix || url.pathname.startsWith(`${buildsPrefix}/`);
    return isOurs ? answer(ports, request, url).catch((error: unknown) => refused(error, ports.report)) : undefined;
  };
}

type Asked = {
  readonly service: BuildsService;
  readonly request: Request;
  readonly url: URL;
  readonly call: BuildsCall;
};

async function answer({ service, caller }: HttpBuildsPorts, request: Request, url: URL): Promise<Response> {
  const who = await caller(request);
  if ("refused" in who) throw new HttpRefusal(who.refused.status, who.refused.message, who.refused.headers);
  const asked: Asked = { service, request, url, call: { caller: who.caller, signal: request.signal } };
  const [buildId, what, ...rest] = url.pathname
    .slice(buildsPrefix.length + 1)
    .split("/")
    .filter((part) => part !== "");
  if (buildId === undefined) return await buildRoutes[""](asked, "", rest);
  if (what === undefined) return await buildRoutes.ID(asked, buildId, rest);
  if ((what === "watch" || what === "cancel") && rest.length === 0)
    return await buildRoutes[`ID/${what}`](asked, buildId, rest);
  if (what === "actions" && rest.length > 0) return await buildRoutes["ID/actions/KEY"](asked, buildId, rest);
  throw new HttpRefusal(404, "there is nothing at this address");
}

type Route = (asked: Asked, buildId: string, rest: readonly string[]) => Response | Promise<Response>;

/** By the path after the prefix. */
export const buildRoutes: Readonly<Record<"" | "ID" | "ID/watch" | "ID/cancel" | "ID/actions/KEY", Route>> = {
  "": (asked) => (asked.request.method === "POST" ? submit(asked) : list(asked)),
  ID: show,
  "ID/watch": watch,
  "ID/cancel": cancel,
  "ID/actions/KEY": (asked, buildId, rest) => action(asked, buildId, decoded(rest.join("/"))),
};

function only({ request }: Asked, method: string): void {
  if (request.method !== method) throw methodNotAllowed(method);
}

async function submit({ service, request, url, call }: Asked): Promise<Response> {
  need(call.caller, "work.submit");
  const document = await documentIn(request);
  const build = await buildOf(document, noFiles);
  const requestId = request.headers.get("idempotency-key") ?? "";
  const priority = Number(url.searchParams.get("priority") ?? 0);
  if (!Number.isInteger(priority)) throw new HttpRefusal(400, "priority is a whole number");
  const { buildId, created } = await service.submit(
    { requestId, priority, what: { kind: "build", value: build } },
    call,
  );
  const headers = { location: `${buildsPrefix}/${buildId}` };
  return Response.json({ build: buildId, created }, { status: created ? 201 : 200, headers });
}

/** They are on the submitter's machine: `millrace build submit` uploads them and names them by digest. */
const noFiles: FindFile = (path) => {
  throw new HttpRefusal(400, `upload the file ${path} and name it with blob: it cannot be read from here`);
};

async function documentIn(request: Request): Promise<BuildDocument> {
  // Parsing YAML takes thousands of times as long, and blocks all other callers meanwhile.
  if ((request.headers.get("content-type") ?? "").includes("yaml"))
    throw new HttpRefusal(415, "a build is JSON here: `millrace build submit` reads YAML and sends that");
  const text = await textOf(request, buildLimits.documentBytesMax);
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    throw new HttpRefusal(400, `not JSON: ${(error as Error).message}`);
  }
  const parsed = BuildDocument.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new HttpRefusal(400, z.prettifyError({ issues: parsed.error.issues.slice(0, 10) }));
}

async function textOf({ body }: Request, bytesMax: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > bytesMax)
      throw new HttpRefusal(
        413,
        `a document has at most ${bytesMax} bytes: a larger build is submitted over gRPC, as a blob`,
      );
    parts.push(Uint8Array.from(part));
  }
  return Buffer.concat(parts).toString("utf8");
}

async function list(asked: Asked): Promise<Response> {
  only(asked, "GET");
  const { service, url, call } = asked;
  const pageSize = Number(url.searchParams.get("limit") ?? 0);
  if (!Number.isInteger(pageSize)) throw new HttpRefusal(400, "limit is a whole number");
  const pageToken = url.searchParams.get("cursor") ?? "";
  const { builds, nextPageToken } = await service.list({ pageSize, pageToken }, call);
  return Response.json({ builds: builds.map(buildWords), ...(nextPageToken !== "" && { cursor: nextPageToken }) });
}

async function show(asked: Asked, buildId: string): Promise<Response> {
  only(asked, "GET");
  return Response.json(buildWords(await asked.service.get({ buildId, withActions: true }, asked.call)));
}

async function action(asked: Asked, buildId: string, key: string): Promise<Response> {
  only(asked, "GET");
  return Response.json(reportWords(await asked.service.getAction({ buildId, key }, asked.call)));
}

async function cancel(asked: Asked, buildId: string): Promise<Response> {
  only(asked, "POST");
  const reason = asked.url.searchParams.get("reason") ?? "";
  const { phase, cancelled } = await asked.service.cancel({ buildId, reason }, asked.call);
  return Response.json({ build: buildId, phase: phaseName(phase), cancelled });
}

/** Waits for the first line, so that an unknown build is a 404 and not an empty stream. */
async function watch(asked: Asked, buildId: string): Promise<Response> {
  only(asked, "GET");
  const news = asked.service.watch({ buildId }, asked.call);
  const first = await news.next();
  const lines = async function* (): AsyncGenerator<Uint8Array> {
    if (first.done === true) return;
    yield line(newsWords(first.value));
    for await (const one of news) yield line(newsWords(one));
  };
  return new Response(ReadableStream.from(lines()), { headers: { "content-type": "application/x-ndjson" } });
}

const line = (value: unknown): Uint8Array => Buffer.from(`${JSON.stringify(value)}\n`);

const statuses: ReadonlyMap<number, number> = new Map([
  [grpcCode.invalidArgument, 400],
  [grpcCode.unauthenticated, 401],
  [grpcCode.permissionDenied, 403],
  [grpcCode.notFound, 404],
  [grpcCode.alreadyExists, 409],
  [grpcCode.failedPrecondition, 412],
  [grpcCode.resourceExhausted, 429],
  [grpcCode.unavailable, 503],
]);

export function refused(thrown: unknown, report: (error: unknown) => void): Response {
  const error = refusalOfInputs(thrown);
  const status = error instanceof GrpcError ? statuses.get(error.code) : undefined;
  if (error instanceof GrpcError && status !== undefined) {
    const missing = detailsOf(error, PreconditionFailure).flatMap(({ violations }) =>
      violations.map((one) => one.subject),
    );
    return problem(status, error.message, missing.length > 0 ? { missing } : {});
  }
  const refusal = asRefusal(error);
  if (!refusal) report(error instanceof Error ? error : new Fault("internal", "serve builds", {}, error));
  const { status: code, message, headers } = refusal ?? new HttpRefusal(500, "this is a bug of ours");
  return problem(code, message, {}, headers);
}

const problem = (
  status: number,
  title: string,
  more: object,
  headers: Readonly<Record<string, string>> = {},
): Response =>
  Response.json(
    { status, title, ...more },
    { status, headers: { ...headers, "content-type": "application/problem+json" } },
  );
