/** What is served: methods with their handlers. */
import type { Method, Service } from "#wire/message.ts";
import type { LaidMessage, LentMessage, OnlyMessage } from "./outgoing.ts";
import type { ServerCall } from "./server-call.ts";

/** May answer at once: then nothing is allocated for waiting. */
export type UnaryHandler<Q, R, P> = (request: Q, call: ServerCall<P>) => R | Promise<R>;
export type ServerStreamHandler<Q, R, P> = (
  request: Q,
  call: ServerCall<P>,
) => AsyncIterable<R | LaidMessage | LentMessage> | OnlyMessage<R>;
export type ClientStreamHandler<Q, R, P> = (requests: AsyncIterable<Q>, call: ServerCall<P>) => Promise<R>;
export type DuplexHandler<Q, R, P> = (requests: AsyncIterable<Q>, call: ServerCall<P>) => AsyncIterable<R>;

type HandlerOf<M, P> =
  M extends Method<infer Q, infer R>
    ? M["streams"] extends "none"
      ? UnaryHandler<Q, R, P>
      : M["streams"] extends "server"
        ? ServerStreamHandler<Q, R, P>
        : M["streams"] extends "client"
          ? ClientStreamHandler<Q, R, P>
          : DuplexHandler<Q, R, P>
    : never;

/** A handler for each method of the service; those that are left out are answered with UNIMPLEMENTED. */
export type Handlers<S extends Service, P> = {
  readonly [K in keyof S["methods"]]?: HandlerOf<S["methods"][K], P>;
};

/** One method as the server keeps it. The types were checked when it was bound. */
export type BoundMethod<P> = {
  readonly method: Method<unknown, unknown>;
  readonly handler: AnyHandler<P>;
  readonly refusalOf?: RefusalOf | undefined;
  /** For one message; left out: the server's default. */
  readonly messageBytesMax?: number | undefined;
};

/** Converts whatever a handler threw, now, later or while streaming, into the error that the caller gets. */
export type RefusalOf = (thrown: unknown) => unknown;

export type AnyHandler<P> = (request: unknown, call: ServerCall<P>) => unknown;

export function bind<S extends Service, P>(service: S, handlers: Handlers<S, P>): readonly BoundMethod<P>[] {
  return Object.entries(service.methods).flatMap(([name, method]) => {
    const handler = (handlers as Readonly<Record<string, AnyHandler<P> | undefined>>)[name];
    return handler ? [{ method, handler }] : [];
  });
}
