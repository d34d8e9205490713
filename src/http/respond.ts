/** From what a handler returned to the response, by the endpoint's kind of answer. */
import type { Clock } from "#base/clock.ts";
import { etagOf, namesEtag } from "./etag.ts";
import { Problem } from "./problem.ts";
import type { Reply, Route } from "./route.ts";
import { eventBytes, eventsType, type ServerEvent } from "./live/sse.ts";

export const linesType = "application/x-ndjson";

/** Sent with every answer of the API: nothing of it is for caches, frames, or guesses at its type. */
const always = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;

const upgrade = { upgrade: "websocket", connection: "upgrade" } as const;

type RespondPorts = { readonly clock: Clock; readonly heartbeatMs: number };

export function respond(route: Route, request: Request, result: unknown, ports: RespondPorts): Response {
  const { answer } = route;
  const { status, headers = {}, body } = (result ?? {}) as Reply<unknown>;
  if (answer.kind === "none") return new Response(null, { status: 204, headers: { ...always, ...headers } });
  switch (answer.kind) {
    case "json":
      return jsonResponse(request, { status: status ?? answer.statuses[0] ?? 200, headers, body });
    case "events":
      return streamed(
        request,
        eventsType,
        status,
        headers,
        () => eventBytes(body as AsyncIterable<ServerEvent | readonly ServerEvent[]>, ports),
        ports.clock,
      );
    case "lines":
      return streamed(
        request,
        linesType,
        status,
        headers,
        () => lineBytes(body as AsyncIterable<unknown>),
        ports.clock,
      );
    case "socket":
      throw new Problem(426, "this address speaks WebSocket: upgrade the connection", { headers: upgrade });
    case "bytes":
      return streamed(
        request,
        answer.contentType,
        status,
        headers,
        () => body as AsyncIterable<Uint8Array>,
        ports.clock,
      );
    default:
      return answer satisfies never;
  }
}

function jsonResponse(
  { method, headers: requestHeaders }: Request,
  { status, headers, body }: { status: number; headers: Readonly<Record<string, string>>; body: unknown },
): Response {
  const text = JSON.stringify(body);
  const isRead = (method === "GET" || method === "HEAD") && status === 200;
  if (!isRead)
    return new Response(text, { status, headers: { ...always, "content-type": "application/json", ...headers } });
  const etag = headers["etag"] ?? etagOf(text);
  const all = { ...always, "cache-control": "no-cache", "content-type": "application/json", ...headers, etag };
  if (namesEtag(requestHeaders.get("if-none-match"), etag)) return new Response(null, { status: 304, headers: all });
  return new Response(method === "HEAD" ? null : text, { status, headers: all });
}

function streamed(
  { method }: Request,
  type: string,
  status: number | undefined,
  headers: Readonly<Record<string, string>>,
  bytes: () => Uint8Array | AsyncIterable<Uint8Array>,
  clock: Clock,
): Response {
  const all = { ...always, "content-type": type, ...headers };
  if (method === "HEAD" || status === 304) return new Response(null, { status: status ?? 200, headers: all });
  const content = bytes();
  const body =
    content instanceof Uint8Array ? Uint8Array.from(content) : ReadableStream.from(failingLate(content, clock));
  return new Response(body, { status: status ?? 200, headers: all });
}

/**
 * The server takes a body that fails at once for one that has ended, and keeps the connection: a caller that was told a
 * length would wait for the rest for ever. A failure that comes a moment later closes the connection.
 */
async function* failingLate(parts: AsyncIterable<Uint8Array>, clock: Clock): AsyncGenerator<Uint8Array> {
  try {
    yield* parts;
  } catch (error) {
    await clock.sleep(lateMs);
    throw error;
  }
}

const lateMs = 20;

async function* lineBytes(values: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const value of values) yield Buffer.from(`${JSON.stringify(value)}\n`);
}
