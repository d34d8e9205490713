/** The door's services on a gRPC server: what each method is answered by, and nothing else. */
import type { GrpcServer } from "#grpc/server.ts";
import type { ServerCall } from "#grpc/server-call.ts";
import {
  ActionCache,
  Capabilities,
  ContentAddressableStorage,
  Execution,
  type BatchReadBlobsRequest,
  type BatchUpdateBlobsRequest,
  type ExecuteRequest,
  type GetActionResultRequest,
  type GetCapabilitiesRequest,
  type GetTreeRequest,
  type SpliceBlobRequest,
  type SplitBlobRequest,
  type WaitExecutionRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import {
  ByteStream,
  type QueryWriteStatusRequest,
  type ReadRequest,
  type WriteRequest,
} from "#wire/generated/google/bytestream/bytestream.ts";
import {
  Operations,
  type CancelOperationRequest,
  type GetOperationRequest,
  type ListOperationsRequest,
  type WaitOperationRequest,
} from "#wire/generated/google/longrunning/operations.ts";
import { rawFindMissingRequest, rawFindMissingResponse, type RawFindMissing } from "#wire/find-missing-raw.ts";
import { getActionResultRequest } from "#wire/get-action-result.ts";
import type { Message, Method } from "#wire/message.ts";
import { rawActionResult, rawTreePage, rawUpdateRequest, type RawUpdate } from "#wire/raw-message.ts";
import { writeRequest } from "#wire/write-request.ts";
import {
  Fetch,
  Push,
  type FetchBlobRequest,
  type FetchDirectoryRequest,
  type PushBlobRequest,
  type PushDirectoryRequest,
} from "#wire/generated/build/bazel/remote/asset/v1/remote_asset.ts";
import { ActionCacheService } from "./cache/action-cache.ts";
import { fetchBlob, fetchDirectory, pushBlob, pushDirectory, type AssetPorts } from "./assets/assets.ts";
import { batchRead, batchUpdate } from "./cache/batch.ts";
import { addBuilds } from "./builds/serve-builds.ts";
import { BuildsService } from "./builds/service.ts";
import { capabilitiesFor } from "./capabilities.ts";
import { need, type BuildCaller } from "./caller.ts";
import { splitBlob, spliceBlob } from "./cache/chunks.ts";
import { CallView, servedInstance, type BuildCall } from "./call.ts";
import { ExecutionService } from "./execute/execution.ts";
import type { CallTraces } from "#door/ports.ts";
import type { ExecutionPorts } from "./execute/execution-ports.ts";
import { refusalOfInputs } from "./execute/execution-refusals.ts";
import { findMissing } from "./cache/find-missing.ts";
import { readLive, type LivePorts } from "./execute/live.ts";
import { parseStreamName } from "./execute/operation-names.ts";
import { readBlob } from "./cache/read.ts";
import { recorded } from "./execute/recorded-call.ts";
import { refusalOf } from "./refusals.ts";
import { getTree } from "./cache/tree.ts";
import { TrustRules } from "./cache/trust-rules.ts";
import { queryWriteStatus, writeBlob } from "./cache/write.ts";

export type CallerOf<P> = (principal: P) => BuildCaller;

/** A method, the messages that it is spoken in here, and what answers it. */
type Add = <Q, R>(
  method: Pick<Method<unknown, unknown>, "path" | "name" | "streams">,
  messages: { readonly request: Message<Q>; readonly response: Message<R> },
  handle: (request: never, call: BuildCall) => unknown,
) => void;

/** Everything behind the door; without `execution` it is a cache only. */
export type ServedPorts = AssetPorts & { readonly execution?: ExecutionPorts | undefined };

/** Answers the paths of what it serves: each checks itself what its caller may. */
export function serveBuild<P>(server: GrpcServer<P>, ports: ServedPorts, callerOf: CallerOf<P>): readonly string[] {
  const paths: string[] = [];
  const add: Add = (method, messages, handle) => {
    // The types of a method and its handler have been written beside each other below.
    const answer = handle as (request: unknown, call: BuildCall) => unknown;
    server.addMethod(
      { ...method, ...(messages as { request: Message<unknown>; response: Message<unknown> }) },
      (request: unknown, call: ServerCall<P>) => answer(request, new CallView(call, callerOf(call.principal))),
      (thrown) => refusalOf(refusalOfInputs(thrown)),
    );
    paths.push(method.path);
  };
  addCapabilities(add, ports);
  addBlobs(add, ports);
  const results = new ActionCacheService(ports, new TrustRules(ports.index));
  addResults(add, results);
  addAssets(add, ports);
  const { execution } = ports;
  const service = execution && new ExecutionService(ports, execution, results);
  addStreams(add, ports, execution && service && { build: ports, execution, operations: service.operations });
  if (service) addExecution(add, service, execution?.traces);
  if (execution) addBuilds(add, new BuildsService({ ...ports, execution }));
  return paths;
}

function addCapabilities(add: Add, { settings, execution }: ServedPorts): void {
  const { getCapabilities } = Capabilities.methods;
  add(getCapabilities, getCapabilities, ({ instanceName }: GetCapabilitiesRequest, { caller }: BuildCall) => {
    servedInstance(instanceName, settings);
    need(caller, "cache.read");
    return capabilitiesFor(caller, settings, execution && { hasWorkers: execution.hasWorkers() });
  });
}

function addBlobs(add: Add, ports: AssetPorts): void {
  const cas = ContentAddressableStorage.methods;
  const { findMissingBlobs, batchUpdateBlobs, batchReadBlobs, splitBlob: split, spliceBlob: splice } = cas;
  add(
    findMissingBlobs,
    { request: rawFindMissingRequest, response: rawFindMissingResponse },
    (request: RawFindMissing, call: BuildCall) => findMissing(ports, request, call),
  );
  add(batchUpdateBlobs, batchUpdateBlobs, (request: BatchUpdateBlobsRequest, call: BuildCall) =>
    batchUpdate(ports, request, call),
  );
  add(batchReadBlobs, batchReadBlobs, (request: BatchReadBlobsRequest, call: BuildCall) =>
    batchRead(ports, request, call),
  );
  add(
    cas.getTree,
    { request: cas.getTree.request, response: rawTreePage },
    (request: GetTreeRequest, call: BuildCall) => getTree(ports, request, call),
  );
  add(split, split, (request: SplitBlobRequest, call: BuildCall) => splitBlob(ports, request, call));
  add(splice, splice, (request: SpliceBlobRequest, call: BuildCall) => spliceBlob(ports, request, call));
}

function addStreams(add: Add, ports: AssetPorts, live: LivePorts | undefined): void {
  const { read, write, queryWriteStatus: query } = ByteStream.methods;
  add(read, read, (request: ReadRequest, call: BuildCall) => {
    const name = live && parseStreamName(request.resourceName);
    return name ? readLive(live, name, request, call) : readBlob(ports, request, call);
  });
  add(
    write,
    { request: writeRequest, response: write.response },
    (requests: AsyncIterable<WriteRequest>, call: BuildCall) => writeBlob(ports, requests, call),
  );
  add(query, query, (request: QueryWriteStatusRequest, call: BuildCall) => queryWriteStatus(ports, request, call));
}

function addResults(add: Add, results: ActionCacheService): void {
  const { getActionResult, updateActionResult } = ActionCache.methods;
  add(
    getActionResult,
    { request: getActionResultRequest, response: rawActionResult },
    (request: GetActionResultRequest, call: BuildCall) => results.get(request, call),
  );
  add(
    updateActionResult,
    { request: rawUpdateRequest, response: rawActionResult },
    (request: RawUpdate, call: BuildCall) => results.update(request, call),
  );
}

function addAssets(add: Add, ports: AssetPorts): void {
  const { fetchBlob: blob, fetchDirectory: directory } = Fetch.methods;
  const { pushBlob: ownBlob, pushDirectory: ownDirectory } = Push.methods;
  add(blob, blob, (request: FetchBlobRequest, call: BuildCall) => fetchBlob(ports, request, call));
  add(directory, directory, (request: FetchDirectoryRequest, call: BuildCall) => fetchDirectory(ports, request, call));
  add(ownBlob, ownBlob, (request: PushBlobRequest, call: BuildCall) => pushBlob(ports, request, call));
  add(ownDirectory, ownDirectory, (request: PushDirectoryRequest, call: BuildCall) =>
    pushDirectory(ports, request, call),
  );
}

function addExecution(add: Add, execution: ExecutionService, traces: CallTraces | undefined): void {
  const { execute, waitExecution } = Execution.methods;
  const { getOperation, listOperations, cancelOperation, deleteOperation, waitOperation } = Operations.methods;
  const { operations } = execution;
  add(execute, execute, (request: ExecuteRequest, call: BuildCall) =>
    recorded("Execute", traces, call, () => execution.execute(request, call)),
  );
  add(waitExecution, waitExecution, (request: WaitExecutionRequest, call: BuildCall) =>
    recorded("WaitExecution", traces, call, () => execution.wait(request, call)),
  );
  add(getOperation, getOperation, (request: GetOperationRequest, call: BuildCall) => operations.get(request, call));
  add(listOperations, listOperations, (request: ListOperationsRequest, call: BuildCall) =>
    operations.list(request, call),
  );
  add(cancelOperation, cancelOperation, (request: CancelOperationRequest, call: BuildCall) =>
    operations.cancel(request, call),
  );
  add(deleteOperation, deleteOperation, () => operations.delete());
  add(waitOperation, waitOperation, (request: WaitOperationRequest, call: BuildCall) => operations.wait(request, call));
}
