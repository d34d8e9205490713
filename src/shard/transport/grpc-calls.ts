/** The asking end of the work protocol: requests and watches over a gRPC client, answers as our own values. */
import { Fault, isFault } from "#base/fault.ts";
import { wasNotBegun } from "#grpc/client-call.ts";
import type { GrpcClient } from "#grpc/client.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { callOf } from "#shard/work/calls.ts";
import { responseOfStatus } from "#shard/work/rejections.ts";
import { readWatched, writeWatch } from "#shard/work/watch.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import type { Method } from "#wire/message.ts";
import type { ShardRequest, ShardResponse, WatchMessage, WatchRequest } from "./protocol.ts";
import type { Address } from "./transport.ts";

/** A server, and where it is, for messages. */
export type PeerCall = { readonly client: GrpcClient; readonly to: Address; readonly signal: AbortSignal };

export async function askShard(peer: PeerCall, request: ShardRequest): Promise<ShardResponse> {
  const call = callOf(request);
  let message: unknown;
  try {
    message = await ask(peer, call.method, call.writeRequest(request));
  } catch (error) {
    // A refusal is an answer; whatever else went wrong is a Fault.
    if (!(error instanceof GrpcError)) throw error;
    return responseOf(peer.to, error);
  }
  return call.readResponse(request, message);
}

/** Throws a Fault, the signal's reason, or a GrpcError that the server answered with. */
export async function ask<Q, R>({ client, to, signal }: PeerCall, method: Method<Q, R>, message: Q): Promise<R> {
  try {
    return await client.unary(method, message, { signal });
  } catch (error) {
    throw translated(to, signal, error);
  }
}

export async function* watchShard(peer: PeerCall, request: WatchRequest): AsyncGenerator<WatchMessage> {
  const { client, to, signal } = peer;
  try {
    for await (const message of client.serverStream(Work.methods.watch, writeWatch(request), { signal }))
      yield readWatched(message);
  } catch (error) {
    const said = translated(to, signal, error);
    if (!(said instanceof GrpcError)) throw said;
    const response = responseOf(to, said);
    if (response.kind === "rejected") yield response;
    else if (response.kind === "not-owner") yield { kind: "moved", hint: response.hint };
    else throw new Fault("unavailable", "watch", { to, why: said.message });
  }
}

/** What the status says of a shard; a Fault for everything else. */
export function responseOf(to: Address, error: GrpcError): ShardResponse {
  try {
    return responseOfStatus(error);
  } catch (fault) {
    throw isFault(fault) ? new Fault(fault.code, fault.doing, { ...fault.facts, from: to }) : fault;
  }
}

/**
 * "unavailable" is said only when the request was surely not delivered (see transport.ts). A GrpcError that has an
 * answer in it goes on as it is.
 */
function translated(to: Address, signal: AbortSignal, error: unknown): unknown {
  if (signal.aborted) return signal.reason;
  if (!(error instanceof GrpcError) || error.details.length > 0) return error;
  if (wasNotBegun(error)) return new Fault("unavailable", "call", { to, why: error.message }, error);
  const isLost =
    error.code === grpcCode.unavailable || error.code === grpcCode.unknown || error.code === grpcCode.cancelled;
  return isLost ? new Fault("unknown-outcome", "call", { to, why: error.message }, error) : error;
}
