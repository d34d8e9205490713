/** How methods are added to a server: each handler has the types of the messages that its method is spoken in. */
import type { LaidMessage, LentMessage, OnlyMessage } from "#grpc/outgoing.ts";
import type { GrpcServer } from "#grpc/server.ts";
import type { ServerCall } from "#grpc/server-call.ts";
import type { Message, Method } from "#wire/message.ts";
import { CallView, type BuildCall } from "./call.ts";
import type { BuildCaller } from "./caller.ts";
import { refusalOfInputs } from "./execute/execution-refusals.ts";
import { refusalOf } from "./refusals.ts";

type Streams = Method<unknown, unknown>["streams"];

/** Also as messages that lie ready in the form of the wire. */
type Streamed<R> = AsyncIterable<R | LaidMessage | LentMessage> | OnlyMessage<R>;

/** What a handler is given and what it gives back, by which side streams. */
type Answering<S extends Streams, Q, R> = (
  request: S extends "client" | "both" ? AsyncIterable<Q> : Q,
  call: BuildCall,
) => S extends "server" | "both" ? Streamed<R> : R | Promise<R>;

/** `messages` may be others than the method's own: read or written another way, they look the same on the wire. */
export type Add = <S extends Streams, Q, R>(
  method: { readonly path: string; readonly name: string; readonly streams: S },
  messages: { readonly request: Message<Q>; readonly response: Message<R> },
  handle: Answering<S, Q, R>,
) => void;

export type Adding = { readonly add: Add; readonly paths: readonly string[] };

/** `paths` has those of all that was added. */
export function addingTo<P>(server: GrpcServer<P>, callerOf: (caller: P) => BuildCaller): Adding {
  const paths: string[] = [];
  const add: Add = (method, messages, handle) => {
    const { path, name, streams } = method;
    // The server keeps methods of all types in one table.
    const untyped = handle as (request: unknown, call: BuildCall) => unknown;
    const { request, response } = messages as { request: Message<unknown>; response: Message<unknown> };
    server.addMethod(
      { path, name, streams, request, response },
      (message: unknown, call: ServerCall<P>) => untyped(message, new CallView(call, callerOf(call.caller))),
      (thrown) => refusalOf(refusalOfInputs(thrown)),
    );
    paths.push(path);
  };
  return { add, paths };
}
