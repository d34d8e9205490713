/** The door's services on a gRPC server: maps methods to handlers, and nothing else. */
import type { GrpcServer } from "#grpc/server.ts";
import {
  ActionCache,
  Capabilities,
  ContentAddressableStorage,
  Execution,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { Operations } from "#wire/generated/google/longrunning/operations.ts";
import { rawFindMissingRequest, rawFindMissingResponse } from "#wire/find-missing-raw.ts";
import { getActionResultRequest } from "#wire/get-action-result.ts";
import { rawActionResult, rawTreePage, rawUpdateRequest } from "#wire/raw-message.ts";
import { writeRequest } from "#wire/write-request.ts";
import { Fetch, Push } from "#wire/generated/build/bazel/remote/asset/v1/remote_asset.ts";
import { ActionCacheService } from "./cache/action-cache.ts";
import { fetchBlob, fetchDirectory, pushBlob, pushDirectory, type AssetPorts } from "./assets/assets.ts";
import { batchRead, batchUpdate } from "./cache/batch.ts";
import { addBuilds } from "./builds/serve-builds.ts";
import type { BuildsService } from "./builds/service.ts";
import { capabilitiesFor } from "./capabilities.ts";
import { need, type BuildCaller } from "./caller.ts";
import { splitBlob, spliceBlob } from "./cache/chunks.ts";
import { addingTo, type Add } from "./add.ts";
import { servedInstance } from "./call.ts";
import { ExecutionService } from "./execute/execution.ts";
import type { CallTraces } from "#door/ports.ts";
import type { ExecutionPorts } from "./execute/execution-ports.ts";
import { findMissing } from "./cache/find-missing.ts";
import { readLive, type LivePorts } from "./execute/live.ts";
import { parseStreamName } from "./execute/operation-names.ts";
import { readBlob } from "./cache/read.ts";
import { recorded } from "./execute/recorded-call.ts";
import { getTree } from "./cache/tree.ts";
import { queryWriteStatus, writeBlob } from "./cache/write.ts";

export type CallerOf<P> = (caller: P) => BuildCaller;

/** Everything behind the door; without `execution` it is only a cache. */
export type ServedPorts = AssetPorts & {
  readonly execution?: ExecutionPorts | undefined;
  /** Builds of many actions; left out: they are not served. */
  readonly builds?: BuildsService | undefined;
};

/** Returns the paths that it serves: each handler checks its caller's permissions. */
export function serveBuild<P>(server: GrpcServer<P>, ports: ServedPorts, callerOf: CallerOf<P>): readonly string[] {
  const { add, paths } = addingTo(server, callerOf);
  addCapabilities(add, ports);
  addBlobs(add, ports);
  const results = new ActionCacheService(ports);
  addResults(add, results);
  addAssets(add, ports);
  const { execution } = ports;
  const service = execution && new ExecutionService(ports, execution, results);
  addStreams(add, ports, execution && service && { build: ports, execution, operations: service.operations });
  if (service) addExecution(add, service, execution?.traces);
  if (ports.builds) addBuilds(add, ports.builds);
  return paths;
}

function addCapabilities(add: Add, { settings, execution }: ServedPorts): void {
  const { getCapabilities } = Capabilities.methods;
  add(getCapabilities, getCapabilities, ({ instanceName }, { caller }) => {
    servedInstance(instanceName, settings);
    need(caller, "cache.read");
    return capabilitiesFor(caller, settings, execution && { hasWorkers: execution.hasWorkers() });
  });
}

function addBlobs(add: Add, ports: AssetPorts): void {
  const cas = ContentAddressableStorage.methods;
  const { findMissingBlobs, batchUpdateBlobs, batchReadBlobs, splitBlob: split, spliceBlob: splice } = cas;
  add(findMissingBlobs, { request: rawFindMissingRequest, response: rawFindMissingResponse }, (request, call) =>
    findMissing(ports, request, call),
  );
  add(batchUpdateBlobs, batchUpdateBlobs, (request, call) => batchUpdate(ports, request, call));
  add(batchReadBlobs, batchReadBlobs, (request, call) => batchRead(ports, request, call));
  add(cas.getTree, { request: cas.getTree.request, response: rawTreePage }, (request, call) =>
    getTree(ports, request, call),
  );
  add(split, split, (request, call) => splitBlob(ports, request, call));
  add(splice, splice, (request, call) => spliceBlob(ports, request, call));
}

function addStreams(add: Add, ports: AssetPorts, live: LivePorts | undefined): void {
  const { read, write, queryWriteStatus: query } = ByteStream.methods;
  add(read, read, (request, call) => {
    const name = live && parseStreamName(request.resourceName);
    return name ? readLive(live, name, request, call) : readBlob(ports, request, call);
  });
  add(write, { request: writeRequest, response: write.response }, (requests, call) => writeBlob(ports, requests, call));
  add(query, query, (request, call) => queryWriteStatus(ports, request, call));
}

function addResults(add: Add, results: ActionCacheService): void {
  const { getActionResult, updateActionResult } = ActionCache.methods;
  add(getActionResult, { request: getActionResultRequest, response: rawActionResult }, (request, call) =>
    results.get(request, call),
  );
  add(updateActionResult, { request: rawUpdateRequest, response: rawActionResult }, (request, call) =>
    results.update(request, call),
  );
}

function addAssets(add: Add, ports: AssetPorts): void {
  const { fetchBlob: blob, fetchDirectory: directory } = Fetch.methods;
  const { pushBlob: ownBlob, pushDirectory: ownDirectory } = Push.methods;
  add(blob, blob, (request, call) => fetchBlob(ports, request, call));
  add(directory, directory, (request, call) => fetchDirectory(ports, request, call));
  add(ownBlob, ownBlob, (request, call) => pushBlob(ports, request, call));
  add(ownDirectory, ownDirectory, (request, call) => pushDirectory(ports, request, call));
}

function addExecution(add: Add, execution: ExecutionService, traces: CallTraces | undefined): void {
  const { execute, waitExecution } = Execution.methods;
  const { getOperation, listOperations, cancelOperation, deleteOperation, waitOperation } = Operations.methods;
  const { operations } = execution;
  add(execute, execute, (request, call) => recorded("Execute", traces, call, () => execution.execute(request, call)));
  add(waitExecution, waitExecution, (request, call) =>
    recorded("WaitExecution", traces, call, () => execution.wait(request, call)),
  );
  add(getOperation, getOperation, (request, call) => operations.get(request, call));
  add(listOperations, listOperations, (request, call) => operations.list(request, call));
  add(cancelOperation, cancelOperation, (request, call) => operations.cancel(request, call));
  add(deleteOperation, deleteOperation, () => operations.delete());
  add(waitOperation, waitOperation, (request, call) => operations.wait(request, call));
}
