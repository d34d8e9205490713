/**
 * An endpoint is the declaration of one HTTP call: method, path, who may call it, and the shape of everything that goes
 * in and comes out. The router, validation, the OpenAPI document, docs/reference/http.md, metrics and the client are
 * all made from it. `route` (route.ts) adds the handler.
 */
import { z } from "zod";
import type { Action } from "#access/policy.ts";
import { parsePath, type PathPattern } from "./path.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Fields of a path or a query: all values arrive as text, so a schema that wants numbers has to coerce. */
export type Fields = z.ZodObject;

const lists = new WeakSet<z.ZodType>();

/** A query parameter that may be given several times, up to `max`; left out: an empty list. */
export function many<S extends z.ZodType>(item: S, max: number, about: string) {
  const schema = z.array(item).max(max).optional().describe(about);
  lists.add(schema);
  return schema;
}

export const isMany = (schema: unknown): boolean => lists.has(schema as z.ZodType);

/** What a successful call returns. Every failure is problem+json, whatever the endpoint. */
export type Answer =
  | { readonly kind: "json"; readonly schema: z.ZodType; readonly statuses: readonly number[] }
  | { readonly kind: "none" }
  /** Server-sent events; `schema` is one event's data. */
  | { readonly kind: "events"; readonly schema: z.ZodType }
  /** One JSON object a line. */
  | { readonly kind: "lines"; readonly schema: z.ZodType }
  | { readonly kind: "bytes"; readonly contentType: string }
  /** A WebSocket of JSON messages; the call is a GET that is upgraded. */
  | { readonly kind: "socket"; readonly receives: z.ZodType; readonly sends: z.ZodType };

/** What a request carries. `bytes` hands the stream to the handler, which must bound what it keeps. */
export type Body =
  | { readonly kind: "json"; readonly schema: z.ZodType; readonly bytesMax: number }
  | { readonly kind: "bytes"; readonly bytesMax: number };

export type EndpointDeclaration = {
  readonly method: Method;
  /** "/v1/jobs/{job}"; the last part may be "{path+}", which takes the rest of the path. */
  readonly path: string;
  /** The row of the policy table that decides who may call. */
  readonly action: Action;
  /** One sentence, for the OpenAPI document and the reference. */
  readonly about: string;
  readonly params?: Fields;
  readonly query?: Fields;
  readonly body?: Body;
  readonly answer: Answer;
  /**
   * Who makes sure that an Idempotency-Key has one effect. `answers` (left out): the first answer is kept and replayed.
   * `handler`: it becomes the request key of a job, which the engine keeps itself (K1).
   */
  readonly idempotency?: "answers" | "handler";
};

export type Endpoint<D extends EndpointDeclaration = EndpointDeclaration> = D & {
  /** "GET /v1/jobs/{job}": names the endpoint in metrics, logs and the reference. */
  readonly name: string;
  readonly pattern: PathPattern;
};

export function endpoint<const D extends EndpointDeclaration>(declared: D): Endpoint<D> {
  const pattern = parsePath(declared.path);
  const declaredParams = Object.keys(declared.params?.shape ?? {});
  const missing = pattern.names.filter((name) => !declaredParams.includes(name));
  const unused = declaredParams.filter((name) => !pattern.names.includes(name));
  if (missing.length > 0 || unused.length > 0)
    throw new Error(`${declared.path}: path and params disagree about ${[...missing, ...unused].join(", ")}`);
  return { ...declared, name: `${declared.method} ${declared.path}`, pattern };
}

export const json = <S extends z.ZodType>(schema: S, ...statuses: readonly number[]) =>
  ({ kind: "json", schema, statuses: statuses.length === 0 ? [200] : statuses }) as const;

export const jsonBody = <S extends z.ZodType>(schema: S, bytesMax = 1024 * 1024) =>
  ({ kind: "json", schema, bytesMax }) as const;

export const events = <S extends z.ZodType>(schema: S) => ({ kind: "events", schema }) as const;

export const lines = <S extends z.ZodType>(schema: S) => ({ kind: "lines", schema }) as const;

export const socket = <R extends z.ZodType, S extends z.ZodType>(receives: R, sends: S) =>
  ({ kind: "socket", receives, sends }) as const;

export const none = { kind: "none" } as const;

/** Fields of an endpoint after validation; an empty object where it declares none. */
export type FieldsOf<F> = F extends z.ZodType ? z.output<F> : Readonly<Record<never, never>>;

export type ParamsOf<D extends EndpointDeclaration> = FieldsOf<D["params"]>;
export type QueryOf<D extends EndpointDeclaration> = FieldsOf<D["query"]>;
export type BodyOf<D extends EndpointDeclaration> = D["body"] extends {
  readonly kind: "json";
  readonly schema: infer S extends z.ZodType;
}
  ? z.output<S>
  : D["body"] extends { readonly kind: "bytes" }
    ? AsyncIterable<Uint8Array>
    : undefined;
