import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { endpoint, events, json, jsonBody, none } from "./endpoint.ts";
import { openApiDocument } from "./openapi.ts";

test("an OpenAPI document names every endpoint, its fields, its policy row and its answers", () => {
  const params = z.object({ job: z.string().describe("Its id.") });
  const list = [
    endpoint({
      method: "GET",
      path: "/v1/jobs/{job}",
      action: "work.read",
      about: "Shows a job.",
      params,
      query: z.object({ limit: z.coerce.number().int().max(5).default(1) }),
      answer: json(z.object({ id: z.string() })),
    }),
    endpoint({
      method: "POST",
      path: "/v1/jobs/{job}",
      action: "work.signal",
      about: "Signals it.",
      params,
      body: jsonBody(z.object({ name: z.string() })),
      answer: json(z.object({ id: z.string() }), 200, 202),
    }),
    endpoint({
      method: "GET",
      path: "/v1/files/{path+}",
      action: "cluster.read",
      about: "x",
      params: z.object({ path: z.string() }),
      answer: events(z.string()),
    }),
    endpoint({ method: "DELETE", path: "/v1/drain", action: "cluster.admin", about: "Ends it.", answer: none }),
  ];
  const document = openApiDocument(list, { title: "t", version: "1", description: "d" }) as {
    readonly openapi: string;
    readonly paths: Record<string, Record<string, Record<string, unknown>>>;
  };
  equal(document.openapi, "3.1.0");
  deepEqual(Object.keys(document.paths), ["/v1/jobs/{job}", "/v1/files/{path}", "/v1/drain"]);
  const { get, post } = document.paths["/v1/jobs/{job}"] ?? {};
  deepEqual(get?.["parameters"], [
    { name: "job", in: "path", required: true, description: "Its id.", schema: { type: "string" } },
    {
      name: "limit",
      in: "query",
      required: false,
      schema: { type: "integer", minimum: -9007199254740991, maximum: 5, default: 1 },
    },
    {
      name: "tenant",
      in: "query",
      required: false,
      description: "Whose things are meant; left out: the caller's tenant.",
      schema: { type: "string" },
    },
  ]);
  equal(get?.["x-millrace-action"], "work.read");
  equal(get?.["operationId"], "get_jobs_job");
  deepEqual(Object.keys(post?.["responses"] as object), ["200", "202", "default"]);
  deepEqual(Object.keys(document.paths["/v1/drain"]?.["delete"]?.["responses"] ?? {}), ["204", "default"]);
});
