/** Calls endpoints by their declarations: what may be sent and what comes back has the endpoint's own types. */
import type { z } from "zod";
import { Fault, type FaultCode } from "#base/fault.ts";
import type { Endpoint, EndpointDeclaration } from "./endpoint.ts";
import { fillPath } from "./path.ts";
import { readEvents, type ServerEvent } from "./live/sse.ts";

export type Fetch = (path: string, init: RequestInit) => Promise<Response>;

type Input<F> = F extends z.ZodType ? { readonly [K in keyof z.input<F>]: z.input<F>[K] } : undefined;
type Wanted<K extends string, T> = T extends undefined ? { readonly [P in K]?: undefined } : { readonly [P in K]: T };
type BodyInput<B> = B extends { readonly kind: "json"; readonly schema: infer S extends z.ZodType }
  ? z.input<S>
  : B extends { readonly kind: "bytes" }
    ? Uint8Array | ReadableStream<Uint8Array>
    : undefined;

export type Request<D extends EndpointDeclaration> = Wanted<"params", Input<D["params"]>> &
  Wanted<"body", BodyInput<D["body"]>> & {
    readonly query?: Partial<NonNullable<Input<D["query"]>>>;
    readonly tenant?: string;
    readonly idempotencyKey?: string;
    readonly lastEventId?: string;
    readonly signal?: AbortSignal;
  };

export type Answered<D extends EndpointDeclaration> = D["answer"] extends {
  readonly kind: "json";
  readonly schema: infer S extends z.ZodType;
}
  ? z.output<S>
  : D["answer"] extends { readonly kind: "events"; readonly schema: infer S extends z.ZodType }
    ? AsyncGenerator<ServerEvent<z.output<S>>>
    : D["answer"] extends { readonly kind: "lines"; readonly schema: infer S extends z.ZodType }
      ? AsyncGenerator<z.output<S>>
      : D["answer"] extends { readonly kind: "bytes" }
        ? Response
        : undefined;

export async function callEndpoint<D extends EndpointDeclaration>(
  fetch: Fetch,
  endpoint: Endpoint<D>,
  request: Request<D>,
): Promise<Answered<D>> {
  const { params, body, query, tenant, idempotencyKey, lastEventId, signal } = request as Request<EndpointDeclaration>;
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, ...(tenant !== undefined && { tenant }) }))
    if (Array.isArray(value)) for (const each of value) search.append(name, String(each));
    else if (value !== undefined) search.set(name, String(value));
  const path = `${fillPath(endpoint.pattern, params ?? {})}${search.size > 0 ? `?${search.toString()}` : ""}`;
  const isJson = endpoint.body?.kind === "json";
  const response = await fetch(path, {
    method: endpoint.method,
    headers: {
      ...(isJson && { "content-type": "application/json" }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
    },
    ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as NonNullable<RequestInit["body"]>) }),
    ...(body instanceof ReadableStream && { duplex: "half" }), // fetch wants it for bodies that are streams
    ...(signal && { signal }),
  });
  if (!response.ok) throw await failureOf(endpoint, response);
  return (await read(endpoint, response)) as Answered<D>;
}

async function read({ answer }: Endpoint, response: Response): Promise<unknown> {
  switch (answer.kind) {
    case "none":
      await response.body?.cancel();
      return undefined;
    case "json":
      return answer.schema.parse(await response.json());
    case "events":
      return parsedEvents(response, answer.schema);
    case "lines":
      return parsedLines(response, answer.schema);
    case "bytes":
    case "socket":
      return response;
    default:
      return answer satisfies never;
  }
}

async function* parsedEvents(response: Response, schema: z.ZodType): AsyncGenerator<ServerEvent> {
  for await (const { id, event, data } of readEvents(response.body ?? empty()))
    yield { ...(id !== undefined && { id }), event, data: schema.parse(JSON.parse(data)) };
}

async function* parsedLines(response: Response, schema: z.ZodType): AsyncGenerator<unknown> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const part of response.body ?? empty()) {
    text += decoder.decode(part, { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) yield schema.parse(JSON.parse(line));
  }
}

async function* empty(): AsyncGenerator<Uint8Array> {}

const codes: Readonly<Record<number, FaultCode>> = {
  404: "not-found",
  409: "stale",
  413: "exhausted",
  429: "exhausted",
  503: "unavailable",
  507: "exhausted",
};

async function failureOf({ name }: Endpoint, response: Response): Promise<Fault> {
  const { title = "no reason given" } = (await response.json().catch(() => ({}))) as { readonly title?: string };
  const { status } = response;
  return new Fault(codes[status] ?? (status < 500 ? "invalid" : "internal"), name, { status, why: title });
}
