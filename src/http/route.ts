/** A route is an endpoint with the function that serves it. */
import type { z } from "zod";
import type { Caller } from "#access/caller.ts";
import type { BodyOf, Endpoint, EndpointDeclaration, ParamsOf, QueryOf } from "./endpoint.ts";
import type { Conversation } from "./live/socket.ts";
import type { ServerEvent } from "./live/sse.ts";

/** One request, validated and authorised. */
export type Call<D extends EndpointDeclaration> = {
  readonly caller: Caller;
  /** Whose things are meant: the caller's tenant, or the one an operator named with ?tenant=. */
  readonly tenant: string;
  readonly params: ParamsOf<D>;
  readonly query: QueryOf<D>;
  readonly body: BodyOf<D>;
  readonly headers: Headers;
  readonly url: URL;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
};

/** A result with a status or headers of its own. */
export type Reply<T> = {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: T;
};

export type ResultOf<D extends EndpointDeclaration> = D["answer"] extends {
  readonly kind: "json";
  readonly schema: infer S extends z.ZodType;
}
  ? Reply<z.input<S>>
  : D["answer"] extends { readonly kind: "events"; readonly schema: infer S extends z.ZodType }
    ? Reply<AsyncIterable<ServerEvent<z.input<S>> | readonly ServerEvent<z.input<S>>[]>>
    : D["answer"] extends { readonly kind: "lines"; readonly schema: infer S extends z.ZodType }
      ? Reply<AsyncIterable<z.input<S>>>
      : D["answer"] extends { readonly kind: "bytes" }
        ? Reply<Uint8Array | AsyncIterable<Uint8Array>>
        : D["answer"] extends {
              readonly kind: "socket";
              readonly receives: infer R extends z.ZodType;
              readonly sends: infer S extends z.ZodType;
            }
          ? { readonly body: (conversation: Conversation<z.output<R>, z.input<S>>) => Promise<void> }
          : { readonly headers?: Readonly<Record<string, string>> } | undefined;

export type Handler<D extends EndpointDeclaration> = (call: Call<D>) => ResultOf<D> | Promise<ResultOf<D>>;

/** A route as the server keeps it: the endpoint's own types are checked where `route` is called. */
export type Route = Endpoint & {
  readonly handle: (call: Call<EndpointDeclaration>) => unknown;
};

export const route = <D extends EndpointDeclaration>(declared: Endpoint<D>, handle: Handler<D>): Route => ({
  ...declared,
  handle,
});
