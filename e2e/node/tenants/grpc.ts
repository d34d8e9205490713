/** For tests: every gRPC method that a node serves, called with names of things. */
import { randomUUID } from "node:crypto";
import { Fetch, Push } from "#wire/generated/build/bazel/remote/asset/v1/remote_asset.ts";
import {
  ActionCache,
  Capabilities,
  ContentAddressableStorage as Cas,
  Execution,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { Operations } from "#wire/generated/google/longrunning/operations.ts";
import { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { ServerReflection } from "#wire/generated/grpc/reflection/v1/reflection.ts";
import { ServerReflection as Alpha } from "#wire/generated/grpc/reflection/v1alpha/reflection.ts";
import { Builds } from "#wire/generated/millrace/build/v1/builds.ts";
import { Events } from "#wire/generated/millrace/work/v1/events.ts";
import { Streams } from "#wire/generated/millrace/work/v1/streams.ts";
import { Tasks } from "#wire/generated/millrace/work/v1/tasks.ts";
import { Admin, Peer, Work } from "#wire/generated/millrace/work/v1/work.ts";
import { resultPrinting } from "#doors/build/testing/build.ts";
import { executing, shAction } from "#e2e/node/build/execution-lab.ts";
import { clusterOnly, first, row, type GrpcRow } from "./row.ts";
import { workRows } from "./work.ts";

/** The services of this program by name, as reflection lists them. */
export const services = [
  Work,
  Admin,
  Streams,
  Tasks,
  Events,
  Peer,
  Execution,
  ActionCache,
  Cas,
  Capabilities,
  ByteStream,
  Operations,
  Fetch,
  Push,
  Builds,
  Health,
  ServerReflection,
  Alpha,
] as const;

const inline = { inlineStdout: true, inlineStderr: false, inlineOutputFiles: [] };
const asset = { instanceName: "", qualifiers: [], referencesBlobs: [], referencesDirectories: [], digestFunction: 0 };
const listed = { alike: "it names nothing", empty: true };
const page = { filter: "", pageSize: 5, name: "operations" };

async function* parts(
  ...writes: readonly { resourceName: string; writeOffset: number; finishWrite: boolean; data: Buffer }[]
) {
  yield* writes;
}

export const grpcRows: readonly GrpcRow[] = [
  ...workRows.reads,
  row(Operations.methods.getOperation, ({ operation: name }) => ({ name })),
  row(Operations.methods.getOperation, ({ endedOperation: name }) => ({ name })),
  row(Operations.methods.getOperation, ({ action }) => ({
    name: `operations/cached-sha256-${action.hash}-${action.sizeBytes}`,
  })),
  row(Operations.methods.waitOperation, ({ endedOperation: name }) => ({ name })),
  row(Operations.methods.waitOperation, ({ operation: name }) => ({ name, timeout: { seconds: 0, nanos: 1 } })),
  row(Operations.methods.listOperations, ({ operationsPage: pageToken }) => ({ ...page, pageToken })),
  row(Operations.methods.listOperations, ({ tenant }) => ({ ...page, pageToken: "", filter: `tenant=${tenant}` }), {
    alike: "no filter is understood",
  }),
  row(Operations.methods.listOperations, () => ({ ...page, pageSize: 1, pageToken: "" }), listed),
  row(Builds.methods.listBuilds, () => ({ pageSize: 1, pageToken: "" }), listed),
  row(Operations.methods.deleteOperation, ({ operation: name }) => ({ name }), { alike: "nobody deletes any" }),
  row(Execution.methods.waitExecution, ({ operation: name }) => ({ name })),
  row(Execution.methods.waitExecution, ({ endedOperation: name }) => ({ name })),
  row(Builds.methods.getBuild, ({ build: buildId }) => ({ buildId, withActions: true })),
  row(Builds.methods.getAction, ({ build: buildId }) => ({ buildId, key: "slow" })),
  row(Builds.methods.listBuilds, ({ buildsPage: pageToken }) => ({ pageSize: 5, pageToken })),
  row(Builds.methods.watchBuild, ({ build: buildId }) => ({ buildId })),
  row(ByteStream.methods.read, ({ stream }) => ({ resourceName: stream, readOffset: 0, readLimit: 10 })),
  row(ByteStream.methods.read, ({ blob }) => ({
    resourceName: `blobs/${blob.hash}/${blob.sizeBytes}`,
    readOffset: 0,
    readLimit: 0,
  })),
  row(ByteStream.methods.queryWriteStatus, ({ upload }) => ({ resourceName: upload })),
  row(ByteStream.methods.queryWriteStatus, ({ blob }) => ({
    resourceName: `uploads/${randomUUID()}/blobs/${blob.hash}/${blob.sizeBytes}`,
  })),
  row(Cas.methods.findMissingBlobs, ({ blob, tree }) => ({
    instanceName: "",
    blobDigests: [blob, tree],
    digestFunction: 0,
  })),
  row(Cas.methods.batchReadBlobs, ({ blob }) => ({
    instanceName: "",
    digests: [blob],
    acceptableCompressors: [],
    digestFunction: 0,
  })),
  row(Cas.methods.getTree, ({ tree }) => ({
    instanceName: "",
    rootDigest: tree,
    pageSize: 0,
    pageToken: "",
    digestFunction: 0,
  })),
  row(Cas.methods.splitBlob, ({ blob }) => ({
    instanceName: "",
    blobDigest: blob,
    digestFunction: 0,
    chunkingFunction: 0,
  })),
  row(ActionCache.methods.getActionResult, ({ action }) => ({
    instanceName: "",
    actionDigest: action,
    ...inline,
    digestFunction: 0,
  })),
  row(Capabilities.methods.getCapabilities, () => ({ instanceName: "" }), clusterOnly("cache.read")),
  row(Fetch.methods.fetchBlob, ({ uri }) => ({ instanceName: "", uris: [uri], qualifiers: [], digestFunction: 0 })),
  row(Fetch.methods.fetchDirectory, ({ uri }) => ({
    instanceName: "",
    uris: [uri],
    qualifiers: [],
    digestFunction: 0,
  })),
  row(Health.methods.check, () => ({ service: "" }), clusterOnly("everyone")),
  row(Health.methods.list, () => ({}), clusterOnly("everyone")),
  row(Health.methods.watch, () => ({ service: "" }), clusterOnly("everyone")),
  ...[ServerReflection, Alpha].map(({ methods: { serverReflectionInfo: method } }): GrpcRow => ({
    method,
    cases: [{ ...clusterOnly("known"), run: (as) => first(as.grpc.duplex(method, listServices())) }],
  })),
  ...workRows.changes,
  row(Operations.methods.cancelOperation, ({ operation: name }) => ({ name })),
  row(Builds.methods.cancelBuild, ({ build: buildId }) => ({ buildId, reason: "mine now" })),
  ...workRows.own,
  row(Execution.methods.execute, ({ action }) => executing(action)),
  row(Execution.methods.execute, ({ uncached }) => executing(uncached)),
  row(ActionCache.methods.updateActionResult, ({ uncached, blob }) => ({
    instanceName: "",
    actionDigest: uncached,
    actionResult: { ...resultPrinting("forged"), outputFiles: [{ ...noFile, path: "o", digest: blob }] },
    digestFunction: 0,
  })),
  row(Cas.methods.spliceBlob, ({ blob }) => ({
    instanceName: "",
    blobDigest: blob,
    chunkDigests: [blob],
    digestFunction: 0,
    chunkingFunction: 0,
  })),
  row(Push.methods.pushBlob, ({ uri, blob }) => ({ ...asset, uris: [uri], blobDigest: blob })),
  row(Push.methods.pushDirectory, ({ uri, tree }) => ({ ...asset, uris: [uri], rootDirectoryDigest: tree })),
  row(Builds.methods.submitBuild, ({ blob }) => ({
    requestId: randomUUID(),
    priority: 0,
    what: { kind: "buildBlob" as const, value: `${blob.hash}/${blob.sizeBytes}` },
  })),
  row(Builds.methods.submitBuild, ({ buildRequest: requestId }) => {
    const value = { name: "same", instanceName: "", actions: [shAction("a", "true")], deadlineMs: 0 };
    return { requestId, priority: 0, what: { kind: "build" as const, value } };
  }),
  {
    method: ByteStream.methods.write,
    cases: [
      {
        what: "goes on with an upload",
        run: (as, { upload: resourceName, uploadRest: { offset: writeOffset, data } }) =>
          as.grpc.clientStream(ByteStream.methods.write, parts({ resourceName, writeOffset, data, finishWrite: true })),
      },
      {
        what: "begins to send a blob",
        run: (as, { blob, bytes }) => {
          const resourceName = `uploads/${randomUUID()}/blobs/${blob.hash}/${blob.sizeBytes}`;
          const half = { resourceName, writeOffset: 0, data: bytes.subarray(0, 5), finishWrite: false };
          return as.grpc.clientStream(ByteStream.methods.write, parts(half));
        },
      },
    ],
  },
  row(
    Cas.methods.batchUpdateBlobs,
    ({ blob, bytes }) => ({
      instanceName: "",
      requests: [{ digest: blob, data: bytes, compressor: 0 }],
      digestFunction: 0,
    }),
    { alike: "whoever has the bytes may send them, and is told the same" },
  ),
];

const noFile = { isExecutable: false, contents: new Uint8Array() };

async function* listServices() {
  yield { host: "", messageRequest: { kind: "listServices", value: "" } as const };
}
