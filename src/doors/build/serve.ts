/** The door's services on a gRPC server: what each method is answered by, and nothing else. */
import type { GrpcServer } from "#grpc/server.ts";
import type { ServerCall } from "#grpc/server-call.ts";
import {
  ActionCache,
  Capabilities,
  ContentAddressableStorage,
  type GetActionResultRequest,
  type GetCapabilitiesRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import {
  ByteStream,
  type QueryWriteStatusRequest,
  type ReadRequest,
  type WriteRequest,
} from "#wire/generated/google/bytestream/bytestream.ts";
import { rawFindMissingRequest, rawFindMissingResponse, type RawFindMissing } from "#wire/find-missing-raw.ts";
import type { Message, Method } from "#wire/message.ts";
import { rawActionResult, rawUpdateRequest, type RawUpdate } from "#wire/raw-message.ts";
import { writeRequest } from "#wire/write-request.ts";
import { ActionCacheService } from "./action-cache.ts";
import { capabilitiesFor } from "./capabilities.ts";
import { need, type BuildCaller } from "./caller.ts";
import { CallView, servedInstance, type BuildCall, type BuildPorts } from "./door.ts";
import { findMissing } from "./find-missing.ts";
import { readBlob } from "./read.ts";
import { refusalOf } from "./refusals.ts";
import { TrustRules } from "./trust-rules.ts";
import { queryWriteStatus, writeBlob } from "./write.ts";

export type CallerOf<P> = (principal: P) => BuildCaller;

/** Answers the paths of what it serves: each checks itself what its caller may. */
export function serveBuild<P>(server: GrpcServer<P>, ports: BuildPorts, callerOf: CallerOf<P>): readonly string[] {
  const trust = new TrustRules(ports.index);
  const results = new ActionCacheService(ports, trust);
  const paths: string[] = [];

  /** The types of a method and its handler have been written beside each other below. */
  const add = <Q, R>(
    method: Pick<Method<unknown, unknown>, "path" | "name" | "streams">,
    messages: { readonly request: Message<Q>; readonly response: Message<R> },
    handle: (request: never, call: BuildCall) => unknown,
  ): void => {
    const answer = handle as (request: unknown, call: BuildCall) => unknown;
    const guarded = (request: unknown, call: ServerCall<P>): unknown =>
      guard(() => answer(request, new CallView(call, callerOf(call.principal))));
    server.addMethod(
      { ...method, ...(messages as { request: Message<unknown>; response: Message<unknown> }) },
      guarded,
    );
    paths.push(method.path);
  };

  const { getCapabilities } = Capabilities.methods;
  add(getCapabilities, getCapabilities, ({ instanceName }: GetCapabilitiesRequest, { caller }: BuildCall) => {
    servedInstance(instanceName, ports.settings);
    need(caller, "cache.read");
    return capabilitiesFor(caller, ports.settings);
  });

  const cas = ContentAddressableStorage.methods;
  add(
    cas.findMissingBlobs,
    { request: rawFindMissingRequest, response: rawFindMissingResponse },
    (request: RawFindMissing, call: BuildCall) => findMissing(ports, request, call),
  );

  const { getActionResult, updateActionResult } = ActionCache.methods;
  add(
    getActionResult,
    { request: getActionResult.request, response: rawActionResult },
    (request: GetActionResultRequest, call: BuildCall) => results.get(request, call),
  );
  add(
    updateActionResult,
    { request: rawUpdateRequest, response: rawActionResult },
    (request: RawUpdate, call: BuildCall) => results.update(request, call),
  );

  const { read, write, queryWriteStatus: query } = ByteStream.methods;
  add(read, read, (request: ReadRequest, call: BuildCall) => readBlob(ports, request, call));
  add(
    write,
    { request: writeRequest, response: write.response },
    (requests: AsyncIterable<WriteRequest>, call: BuildCall) => writeBlob(ports, requests, call),
  );
  add(query, query, (request: QueryWriteStatusRequest, call: BuildCall) => queryWriteStatus(ports, request, call));
  return paths;
}

/** Whatever is thrown, now, later or while streaming, is told in this door's words. */
function guard(run: () => unknown): unknown {
  try {
    const answer = run();
    if (answer instanceof Promise)
      return answer.catch((error: unknown) => {
        throw refusalOf(error);
      });
    if (typeof answer === "object" && answer !== null && Symbol.asyncIterator in answer)
      return guardedStream(answer as AsyncIterable<unknown>);
    return answer;
  } catch (error) {
    throw refusalOf(error);
  }
}

async function* guardedStream(stream: AsyncIterable<unknown>): AsyncGenerator<unknown> {
  try {
    yield* stream;
  } catch (error) {
    throw refusalOf(error);
  }
}
