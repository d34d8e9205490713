/**
 * Calls between nodes, and from tools to a node, that are about no shard: each has a name and carries JSON. They are no
 * part of the published protocol, and are served on the node's own sockets only.
 */
import { Fault } from "#base/fault.ts";
import type { GrpcServer } from "#grpc/server.ts";
import type { ServerCall } from "#grpc/server-call.ts";
import type { AnyHandler } from "#grpc/service.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { statusOfFault } from "#shard/work/rejections.ts";
import type { Method } from "#wire/message.ts";
import { rawMessage } from "#wire/raw-message.ts";
import { ask, responseOf, type PeerCall } from "./grpc-calls.ts";
import { faultOf } from "./wire-fault.ts";

export type NamedCalls = Readonly<Record<string, (body: unknown, signal: AbortSignal) => Promise<unknown>>>;

const json = rawMessage("millrace.node.Json");

const methodOf = (name: string): Method<Uint8Array, Uint8Array> => ({
  name,
  path: `/millrace.node.Calls/${name}`,
  request: json,
  response: json,
  streams: "none",
});

export function serveCalls<P>(server: GrpcServer<P>, calls: NamedCalls): void {
  for (const [name, answer] of Object.entries(calls))
    server.addMethod(methodOf(name), (async (bytes: Uint8Array, call: ServerCall<P>) => {
      try {
        return write(await answer(read(name, bytes), call.signal));
      } catch (error) {
        const { code, message, details } = statusOfFault(faultOf(error, `serve ${name}`));
        throw new GrpcError(code || grpcCode.unknown, message, details);
      }
    }) as AnyHandler<P>);
}

/** Fault "not-found" where the node offers no such call. */
export async function callByName(peer: PeerCall, name: string, body: unknown): Promise<unknown> {
  try {
    return read(name, await ask(peer, methodOf(name), write(body)));
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    if (error.code === grpcCode.unimplemented) throw new Fault("not-found", "call", { to: peer.to, name });
    const response = responseOf(peer.to, error); // throws the Fault that the other side had
    throw new Fault("internal", "call", { to: peer.to, name, why: response.kind });
  }
}

const write = (value: unknown): Uint8Array => Buffer.from(value === undefined ? "" : JSON.stringify(value));

function read(name: string, bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8")) as unknown;
  } catch (cause) {
    throw new Fault("invalid", `call ${name}`, { why: "the body is not JSON" }, cause);
  }
}
