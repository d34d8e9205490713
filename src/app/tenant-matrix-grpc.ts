/** For tests: every gRPC method that a node serves, called with names of things. The order is part of it: what a
 * caller may rightly do for itself (submit, upload) comes behind what it could see of that. */
import { randomUUID } from "node:crypto";
import type { GrpcClient } from "#grpc/client.ts";
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
import type { Command } from "#wire/generated/millrace/work/v1/commands.ts";
import { Admin, Peer, Work } from "#wire/generated/millrace/work/v1/work.ts";
import type { Method } from "#wire/message.ts";
import { resultPrinting } from "#doors/build/testing.ts";
import { executing, shAction } from "./execution-lab.ts";
import { oneTask, submission, type Names } from "./tenant-matrix-world.ts";

export type GrpcCaller = { readonly grpc: GrpcClient; readonly executor: string; readonly tenant: string };

export type Case<C> = {
  readonly what?: string;
  readonly run: (as: C, named: Names) => Promise<unknown>;
  /** Why mill itself hears the same of its own and of nothing; left out: it does not, which is checked. */
  readonly alike?: string;
};

export type GrpcRow = {
  readonly method: Pick<Method<unknown, unknown>, "path">;
  readonly cases: readonly Case<GrpcCaller>[];
};

/** The services of this program by name, as reflection tells them. */
export const services = [
  Work,
  Admin,
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

const first = async (stream: AsyncIterable<unknown>): Promise<unknown> => {
  for await (const message of stream) return message;
  return "nothing";
};

const row = <Q, R>(
  method: Method<Q, R>,
  request: (named: Names, as: GrpcCaller) => Q,
  more: Omit<Case<GrpcCaller>, "run"> = {},
): GrpcRow => ({
  method,
  cases: [
    {
      ...more,
      run: (as, named) =>
        method.streams === "server"
          ? first(as.grpc.serverStream(method, request(named, as)))
          : as.grpc.unary(method, request(named, as)),
    },
  ],
});

const signal = { id: "1", name: "go", payload: "" };
const claim = (task: keyof Names["tasks"]) => (named: Names, as: GrpcCaller) => ({
  shard: 0,
  executor: as.executor,
  ...named.tasks[task],
});
const reserving = { shard: 0, prefer: [], count: 5, start: false, startPure: false };
const inline = { inlineStdout: true, inlineStderr: false, inlineOutputFiles: [] };
const asset = { instanceName: "", qualifiers: [], referencesBlobs: [], referencesDirectories: [], digestFunction: 0 };
const page = { filter: "", pageSize: 5, name: "operations" };
const clusterOnly = { alike: "it tells of the cluster, and of no tenant" };
const operatorsOnly = { alike: "only operators may" };

const batched = (named: Names, as: GrpcCaller): readonly Command[] => [
  { command: { kind: "signal", value: { shard: 0, job: named.job, stage: 1, signal: { ...signal, id: "2" } } } },
  { command: { kind: "leave", value: { shard: 0, job: named.job, subscriber: "somebody" } } },
  { command: { kind: "report", value: { ...claim("read")(named, as), steps: [] } } },
];

async function* parts(
  ...writes: readonly { resourceName: string; writeOffset: number; finishWrite: boolean; data: Buffer }[]
) {
  yield* writes;
}

export const grpcRows: readonly GrpcRow[] = [
  // What can be read.
  row(Work.methods.getJob, ({ job }) => ({ shard: 0, job })),
  row(Work.methods.getJob, ({ job, tenant }) => ({ shard: 0, job, tenant })),
  row(Work.methods.listJobs, ({ job }) => ({ shard: 0, limit: 10, before: job + 1 }), {
    alike: "all of its jobs have smaller numbers than either",
  }),
  row(Work.methods.listJobs, ({ tenant }) => ({ shard: 0, limit: 10, tenant })),
  row(Work.methods.getTask, ({ tasks }) => ({ shard: 0, task: tasks.read.task })),
  row(Work.methods.why, ({ job }) => ({ shard: 0, job })),
  row(Work.methods.why, ({ job, tasks }) => ({ shard: 0, job, task: tasks.start.task })),
  row(Work.methods.planInputs, ({ tasks }) => ({ shard: 0, ...tasks.plan, limit: 10 })),
  row(Work.methods.listExecutors, () => ({ shard: 0 }), { alike: "it names nothing" }),
  row(Work.methods.getStats, () => ({ shard: 0 }), clusterOnly),
  row(Work.methods.getPartitionMap, () => ({}), clusterOnly),
  row(Work.methods.watch, ({ job }) => ({ shard: 0, job })),
  row(Work.methods.watch, ({ job }) => ({ shard: 0, job, after: { epoch: 1, seq: 1 } })),
  row(Work.methods.watch, ({ job, tenant }) => ({ shard: 0, job, tenant })),
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
  row(Capabilities.methods.getCapabilities, () => ({ instanceName: "" }), clusterOnly),
  row(Fetch.methods.fetchBlob, ({ uri }) => ({ instanceName: "", uris: [uri], qualifiers: [], digestFunction: 0 })),
  row(Fetch.methods.fetchDirectory, ({ uri }) => ({
    instanceName: "",
    uris: [uri],
    qualifiers: [],
    digestFunction: 0,
  })),
  row(Health.methods.check, () => ({ service: "" }), clusterOnly),
  row(Health.methods.list, () => ({}), clusterOnly),
  row(Health.methods.watch, () => ({ service: "" }), clusterOnly),
  ...[ServerReflection, Alpha].map(({ methods: { serverReflectionInfo: method } }): GrpcRow => ({
    method,
    cases: [{ ...clusterOnly, run: (as) => first(as.grpc.duplex(method, listServices())) }],
  })),

  // What would change something of mill's.
  row(Work.methods.leave, ({ job, subscriber }) => ({ shard: 0, job, subscriber })),
  row(Work.methods.signal, ({ job }) => ({ shard: 0, job, stage: 1, signal })),
  row(Work.methods.signal, ({ job, tenant }) => ({ shard: 0, job, stage: 1, signal, tenant })),
  row(Work.methods.reserve, ({ label }, { executor }) => ({ ...reserving, executor, offers: [label], nonce: "" })),
  row(Work.methods.reserve, ({ label, tenant }, { executor }) => {
    return { ...reserving, executor, offers: [label], nonce: "", tenant };
  }),
  row(Work.methods.start, claim("start")),
  row(Work.methods.renew, (named, as) => ({ shard: 0, executor: as.executor, claims: [named.tasks.renew] })),
  row(Work.methods.report, (named, as) => ({ ...claim("report")(named, as), steps: [] })),
  row(Work.methods.commit, (named, as) => ({
    ...claim("commit")(named, as),
    result: { payload: "forged", digests: [`${named.blob.hash}/${named.blob.sizeBytes}`] },
  })),
  row(Work.methods.recordPlan, (named, as) => ({
    ...claim("plan")(named, as),
    plan: { plan: { kind: "wait" as const, value: { forMs: 60_000, signals: ["go"] } } },
  })),
  row(Work.methods.fail, (named, as) => ({ ...claim("fail")(named, as), reason: 2, message: "" })),
  row(Work.methods.release, claim("release")),
  row(Work.methods.invalidate, ({ tasks }) => ({ shard: 0, task: tasks.invalidate.task, generation: 1, reason: "" })),
  row(Work.methods.batch, (named, as) => ({ shard: 0, commands: batched(named, as) })),
  row(Admin.methods.drain, ({ executor }) => ({ shard: 0, executor, reason: "" }), operatorsOnly),
  row(Admin.methods.resume, ({ executor }) => ({ shard: 0, executor }), operatorsOnly),
  row(
    Admin.methods.setTenant,
    ({ tenant }) => ({ shard: 0, tenant, weight: 1, runningMax: 1, queuedMax: 1, home: 0 }),
    operatorsOnly,
  ),
  row(
    Peer.methods.lendQuota,
    ({ tenant }) => ({ shard: 0, tenant, borrower: 0, want: 1, running: 0, forMs: 1_000 }),
    operatorsOnly,
  ),
  row(Peer.methods.take, () => ({ shard: 0, now: false }), operatorsOnly),
  row(Operations.methods.cancelOperation, ({ operation: name }) => ({ name })),
  row(Builds.methods.cancelBuild, ({ build: buildId }) => ({ buildId, reason: "mine now" })),
  row(Work.methods.cancel, ({ job, tenant }) => ({ shard: 0, job, reason: "mine now", tenant })),
  row(Work.methods.cancel, ({ job }) => ({ shard: 0, job, reason: "mine now" })),

  // What a caller may do for itself with the same names.
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
  row(Work.methods.submit, ({ tenant, label }) => submission(tenant, oneTask(label))),
  row(Work.methods.submit, ({ requestKey }, { tenant }) => submission(tenant, oneTask("own=x"), { requestKey })),
  row(Work.methods.submit, ({ mergeKey }, { tenant }) => submission(tenant, oneTask("own=x"), { mergeKey })),
  row(
    Work.methods.submit,
    ({ mergeKey }, { tenant }) => {
      return submission(tenant, [], { mergeKey: `${mergeKey}!`, joinOnly: true, deadlineMs: 0 });
    },
    { alike: "nobody uses that key" },
  ),
  row(Work.methods.submit, ({ blob }, { tenant }) => {
    const result = { payload: "", digests: [`${blob.hash}/${blob.sizeBytes}`] };
    return submission(tenant, oneTask("own=x"), { reuse: [{ stage: "only", key: "1", spec: "", result }] });
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
