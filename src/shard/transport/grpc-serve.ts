/** The work protocol as gRPC services: each call is a request to a shard, or a watch. The translation is in work/. */
import { isFault } from "#base/fault.ts";
import type { GrpcServer } from "#grpc/server.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { ServerCall } from "#grpc/server-call.ts";
import type { AnyHandler } from "#grpc/service.ts";
import type { Answer } from "#kernel/read/query.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import type { Message } from "#wire/message.ts";
import type { ShardRequest, ShardResponse, ShardService, WatchRequest } from "./protocol.ts";
import { workCalls, type WorkCall } from "#shard/work/calls.ts";
import { writeMap, type PartitionMap } from "#shard/work/map.ts";
import { requestMessage } from "#shard/work/plain/requests.ts";
import { plainAnswer, responseMessage } from "#shard/work/plain/responses.ts";
import { statusOfFault, type Status } from "#shard/work/rejections.ts";
import { readWatch, writeWatched } from "#shard/work/watch.ts";

/** A caller that routes by itself sends this, and is answered only by the shards of this node. */
export const directField = "millrace-direct";

export type WorkServing<P> = {
  /** This node's own shards. */
  readonly service: ShardService;
  /** All shards, through this node's router: for callers that know only this node. */
  readonly routed: ShardService;
  readonly map: () => Promise<PartitionMap>;
  /** Narrows the request to what the caller may ask, such as one tenant. Throws if the caller may not ask at all. */
  readonly narrow?: Narrow<P>;
};

export type Narrow<P> = {
  request(caller: P, request: ShardRequest): ShardRequest;
  /** Lookups that must be made before the request is passed on. */
  first(caller: P, request: ShardRequest): readonly Lookup[];
  watch(caller: P, request: WatchRequest): WatchRequest;
  /** Throws if the caller may not see which node owns which shard. */
  map(caller: P): void;
};

/** `check` throws if the caller may not do this to what was found. */
export type Lookup = { readonly request: ShardRequest; readonly check: (answer: Answer) => void };

export function serveWork<P>(server: GrpcServer<P>, serving: WorkServing<P>): void {
  for (const call of workCalls) {
    const request = requestMessage(call, refused) as Message<unknown>;
    server.addMethod({ ...call.method, request, response: responseMessage(call) }, handlerOf(call, serving));
  }
  server.addMethod(Work.methods.watch, ((message: Parameters<typeof readWatch>[0], call: ServerCall<P>) =>
    watch(readWatch(message), call, serving)) as AnyHandler<P>);
  server.addMethod(Work.methods.getPartitionMap, async (_message, call: ServerCall<P>) => {
    serving.narrow?.map(call.caller);
    return writeMap(await serving.map());
  });
}

function handlerOf<P>(work: WorkCall, serving: WorkServing<P>): AnyHandler<P> {
  return (message, call) => {
    const sent = message as ShardRequest;
    const request = serving.narrow?.request(call.caller, sent) ?? sent;
    const first = serving.narrow?.first(call.caller, request) ?? nothing;
    const service = serviceFor(call, serving);
    const { signal } = call;
    const asking = first.length === 0 ? service.request(request, signal) : inTurn(first, request, service, signal);
    return asking.then(
      (response) => {
        const plain = plainAnswer(request, response);
        if (plain) return plain;
        const answered = work.writeResponse(request, response);
        if (answered.ok) return answered.message;
        throw errorOf(answered.status);
      },
      (error: unknown) => {
        throw refused(error);
      },
    );
  };
}

const nothing: readonly Lookup[] = [];

/** If nothing is found, the request itself is refused later; if the lookup fails, the request is not passed on. */
async function inTurn(
  first: readonly Lookup[],
  request: ShardRequest,
  service: ShardService,
  signal: AbortSignal,
): Promise<ShardResponse> {
  for (const { request: sent, check } of first) {
    const response = await service.request(sent, signal);
    if (response.kind === "answer") check(response.answer);
    else if (response.kind !== "rejected") return response;
  }
  return await service.request(request, signal);
}

async function* watch<P>(sent: WatchRequest, call: ServerCall<P>, serving: WorkServing<P>): AsyncGenerator<unknown> {
  const request = serving.narrow?.watch(call.caller, sent) ?? sent;
  try {
    for await (const message of serviceFor(call, serving).watch(request, call.signal)) {
      const watched = writeWatched(request, message);
      if (!watched.ok) throw errorOf(watched.status);
      yield watched.message;
    }
  } catch (error) {
    throw refused(error);
  }
}

const serviceFor = <P>(call: ServerCall<P>, { service, routed }: WorkServing<P>): ShardService =>
  call.metadata(directField) === undefined ? routed : service;

const refused = (error: unknown): unknown => (isFault(error) ? errorOf(statusOfFault(error)) : error);

const errorOf = ({ code, message, details }: Status): GrpcError =>
  new GrpcError(code || grpcCode.unknown, message, details);
