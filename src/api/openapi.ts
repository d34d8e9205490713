/** The document that describes the whole HTTP API, made from the endpoints themselves. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";

export const showOpenApi = endpoint({
  method: "GET",
  path: "/v1/openapi.json",
  action: "service.describe",
  about: "Describes this API as an OpenAPI 3.1 document.",
  answer: json(z.looseObject({ openapi: z.string() })),
});
