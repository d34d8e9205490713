/** The OpenAPI 3.1 document of a list of endpoints. Its schemas are JSON Schema 2020-12, which zod writes by itself. */
import { z } from "zod";
import { policy } from "#access/policy.ts";
import type { Answer, Body, Endpoint, Fields } from "./endpoint.ts";
import { problemType } from "./problem.ts";
import { linesType } from "./respond.ts";
import { eventsType } from "./live/sse.ts";

export type OpenApiInfo = { readonly title: string; readonly version: string; readonly description: string };

export function openApiDocument(endpoints: readonly Endpoint[], info: OpenApiInfo): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll("+}", "}");
    (paths[path] ??= {})[endpoint.method.toLowerCase()] = operation(endpoint);
  }
  return {
    openapi: "3.1.0",
    info,
    paths,
    security: [{ token: [] }, { session: [] }],
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: "millrace_session" },
      },
      schemas: { Problem: problemSchema },
    },
  };
}

function operation(endpoint: Endpoint): object {
  const { about, action, params, query, body, answer, method } = endpoint;
  const parameters = [
    ...parametersOf(params, "path"),
    ...parametersOf(query, "query"),
    ...(policy[action].of === "tenant" ? [tenantParameter] : []),
    ...(method !== "GET" && body?.kind !== "bytes" ? [keyParameter] : []),
  ];
  return {
    operationId: operationId(endpoint),
    summary: about,
    "x-millrace-action": action,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: bodyContent(body) } }),
    responses: { ...successes(answer), default: problemResponse },
  };
}

/** "GET /v1/jobs/{job}/tasks" -> "get_jobs_job_tasks". */
export const operationId = ({ method, path }: Pick<Endpoint, "method" | "path">): string =>
  [method.toLowerCase(), ...(path.match(/[A-Za-z0-9]+/g) ?? []).filter((part) => part !== "v1")].join("_");

const parametersOf = (fields: Fields | undefined, place: "path" | "query"): readonly object[] =>
  Object.entries(fields?.shape ?? {}).map(([name, schema]) => {
    const { description, ...rest } = schemaOf(schema as z.ZodType, "input");
    const required = place === "path" || !(schema as z.ZodType).safeParse(undefined).success;
    return { name, in: place, required, ...(description !== undefined && { description }), schema: rest };
  });

const tenantParameter = {
  name: "tenant",
  in: "query",
  required: false,
  description: "Whose things are meant; left out: the caller's tenant.",
  schema: { type: "string" },
} as const;

const keyParameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "Sent again with the same key and body, the call gets its first answer and has no second effect.",
  schema: { type: "string", maxLength: 255 },
} as const;

const bodyContent = (body: Body): object =>
  body.kind === "json"
    ? { "application/json": { schema: schemaOf(body.schema, "input") } }
    : { "application/octet-stream": {} };

function successes(answer: Answer): Readonly<Record<string, object>> {
  switch (answer.kind) {
    case "none":
      return { 204: { description: "Done." } };
    case "json": {
      const content = { "application/json": { schema: schemaOf(answer.schema, "output") } };
      return Object.fromEntries(answer.statuses.map((status) => [status, { description: meaning(status), content }]));
    }
    case "events":
      return stream(eventsType, "Server-sent events; each event's data is one such object.", answer.schema);
    case "lines":
      return stream(linesType, "One such object a line.", answer.schema);
    case "socket":
      return {
        101: { description: "A WebSocket. Messages to the client have the form of x-sends.", ...socketSchemas(answer) },
      };
    case "bytes":
      return { 200: { description: "The bytes.", content: { [answer.contentType]: {} } } };
    default:
      return answer satisfies never;
  }
}

const socketSchemas = ({ receives, sends }: Extract<Answer, { kind: "socket" }>): object => ({
  "x-receives": schemaOf(receives, "input"),
  "x-sends": schemaOf(sends, "output"),
});

const stream = (type: string, description: string, schema: z.ZodType): Readonly<Record<string, object>> => ({
  200: { description, content: { [type]: { schema: schemaOf(schema, "output") } } },
});

const meaning = (status: number): string =>
  ({ 200: "Done.", 201: "Created.", 202: "Accepted; it goes on in the background." })[status] ?? "Done.";

const problemSchema = {
  type: "object",
  required: ["status", "title"],
  properties: { status: { type: "integer" }, title: { type: "string", description: "What went wrong." } },
} as const;

const problemResponse = {
  description: "What went wrong, as problem+json.",
  content: { [problemType]: { schema: { $ref: "#/components/schemas/Problem" } } },
} as const;

function schemaOf(schema: z.ZodType, io: "input" | "output"): { readonly description?: string } {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}
