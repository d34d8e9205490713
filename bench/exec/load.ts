/**
 * The load of `bench exec`, in a separate process: a client of remote execution that uploads actions, executes them
 * with limited concurrency, and records the times of each.
 */
import { createHash } from "node:crypto";
import { noCommand } from "#doors/build/testing/build.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import {
  Action,
  Command,
  ContentAddressableStorage,
  Directory,
  ExecuteResponse,
  Execution,
  type Digest,
  type ExecutedActionMetadata,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Operation } from "#wire/generated/google/longrunning/operations.ts";
import { decode, encode } from "#wire/message.ts";
import { answering } from "#bench/load-process.ts";

export type ExecAsked =
  /** Uploads this many different actions, with one input tree. */
  | {
      readonly kind: "prepare";
      readonly ports: readonly number[];
      readonly files: number;
      readonly count: number;
      readonly batch: string;
    }
  | { readonly kind: "execute"; readonly ports: readonly number[]; readonly batch: string; readonly atOnce: number };

/** One action as its client saw it, and as its worker reported it: on one machine the clocks are the same. */
export type Sample = {
  readonly name: string;
  readonly sentAtMs: number;
  readonly doneAtMs: number;
  readonly tookMs: number;
  /** The following are all in milliseconds. */
  readonly workerStartAtMs: number;
  readonly stageMs: number;
  /** From then until its claim is confirmed. */
  readonly confirmMs: number;
  readonly executeMs: number;
  /** From the shell's fork to the end of what it forked. */
  readonly ranMs: number;
  readonly collectMs: number;
  readonly workerEndAtMs: number;
};

export type ExecDid = { readonly seconds: number; readonly samples: readonly Sample[] };

/** Kept between orders: connections are reused, as a build tool does. */
const clients = new Map<number, GrpcClient>();
const prepared = new Map<string, readonly Digest[]>();
/** By port and size: a tree is uploaded to each server only once. */
const uploaded = new Map<string, Digest>();

function clientAt(port: number): GrpcClient {
  let client = clients.get(port);
  if (!client) {
    const connect = () => connectH2({ host: "127.0.0.1", port, clock });
    clients.set(port, (client = new GrpcClient({ clock, authority: "bench", connect })));
  }
  return client;
}

const digestOf = (bytes: Uint8Array): Digest => ({
  hash: createHash("sha256").update(bytes).digest("hex"),
  sizeBytes: bytes.length,
});

const blobsAtOnce = 1_000;

class Uploading {
  readonly #client: GrpcClient;
  #requests: { digest: Digest; data: Uint8Array; compressor: number }[] = [];

  constructor(client: GrpcClient) {
    this.#client = client;
  }

  async add(data: Uint8Array): Promise<Digest> {
    const digest = digestOf(data);
    this.#requests.push({ digest, data, compressor: 0 });
    if (this.#requests.length >= blobsAtOnce) await this.flush();
    return digest;
  }

  async flush(): Promise<void> {
    const requests = this.#requests.splice(0);
    if (requests.length === 0) return;
    const { responses } = await this.#client.unary(ContentAddressableStorage.methods.batchUpdateBlobs, {
      instanceName: "",
      requests,
      digestFunction: 0,
    });
    const refused = responses.find(({ status }) => (status?.code ?? 0) !== 0);
    if (refused) throw new Error(`upload: ${refused.status?.message}`);
  }
}

async function prepare({ ports, files, count, batch }: Extract<ExecAsked, { kind: "prepare" }>): Promise<void> {
  const [port = 0] = ports;
  const uploading = new Uploading(clientAt(port));
  const inputRootDigest = uploaded.get(`${port} ${files}`) ?? (await uploadTree(uploading, files));
  const commandDigest = await uploading.add(
    encode(Command, {
      ...noCommand,
      arguments: ["/bin/true"],
      environmentVariables: [{ name: "PATH", value: "/usr/bin:/bin" }],
    }),
  );
  const actions: Digest[] = [];
  for (let i = 0; i < count; i += 1) {
    const salt = Buffer.from(`${batch} ${i}`);
    actions.push(await uploading.add(encode(Action, { commandDigest, inputRootDigest, doNotCache: false, salt })));
  }
  await uploading.flush();
  uploaded.set(`${port} ${files}`, inputRootDigest);
  prepared.set(batch, actions);
}

/** As many folders as files in each. */
async function uploadTree(uploading: Uploading, files: number): Promise<Digest> {
  const folders = Math.floor(Math.sqrt(files));
  const directories = [];
  for (let folder = 0; folder < folders; folder += 1) {
    const inside = [];
    for (let file = folder; file < files; file += folders) {
      const digest = await uploading.add(Buffer.from(`one of ${files} files, the one numbered ${file}`));
      inside.push({ name: `f${file}`, digest, isExecutable: false });
    }
    const bytes = encode(Directory, { files: inside, directories: [], symlinks: [] });
    directories.push({ name: `d${String(folder).padStart(2, "0")}`, digest: await uploading.add(bytes) });
  }
  return await uploading.add(encode(Directory, { files: [], directories, symlinks: [] }));
}

async function execute({ ports, batch, atOnce }: Extract<ExecAsked, { kind: "execute" }>): Promise<ExecDid> {
  const actions = prepared.get(batch) ?? [];
  prepared.delete(batch);
  const samples: Sample[] = [];
  let next = 0;
  const startedMono = performance.now();
  const lane = async (no: number): Promise<void> => {
    const client = clientAt(ports[no % ports.length] ?? 0);
    for (let action = actions[next++]; action; action = actions[next++]) samples.push(await one(client, action));
  };
  await Promise.all(Array.from({ length: atOnce }, (_, no) => lane(no)));
  return { seconds: (performance.now() - startedMono) / 1_000, samples };
}

async function one(client: GrpcClient, actionDigest: Digest): Promise<Sample> {
  const [sentAtMs, sentMono] = [Date.now(), performance.now()];
  let last: Operation | undefined;
  const request = {
    instanceName: "",
    skipCacheLookup: false,
    actionDigest,
    digestFunction: 0,
    inlineStdout: false,
    inlineStderr: false,
    inlineOutputFiles: [],
  };
  for await (const operation of client.serverStream(Execution.methods.execute, request)) last = operation;
  const tookMs = performance.now() - sentMono;
  if (last?.result?.kind !== "response") throw new Error("an action ended without a response");
  const { result, status, cachedResult } = decode(ExecuteResponse, last.result.value.value);
  if (!result || result.exitCode !== 0 || status || cachedResult)
    throw new Error(`an action was not executed: exit code ${result?.exitCode}, ${status?.message ?? "no status"}`);
  return { name: last.name, sentAtMs, doneAtMs: Date.now(), tookMs, ...told(result.executionMetadata) };
}

function told(metadata: ExecutedActionMetadata | undefined) {
  if (!metadata) throw new Error("a result without metadata");
  const at = (stamp: { seconds: number; nanos: number } | undefined): number =>
    (stamp?.seconds ?? Number.NaN) * 1_000 + (stamp?.nanos ?? 0) / 1e6;
  const workerStartAtMs = at(metadata.workerStartTimestamp);
  const workerEndAtMs = at(metadata.workerCompletedTimestamp);
  const executedAtMs = at(metadata.executionCompletedTimestamp);
  const stagedAtMs = at(metadata.inputFetchCompletedTimestamp);
  const executingAtMs = at(metadata.executionStartTimestamp);
  return {
    workerStartAtMs,
    stageMs: stagedAtMs - workerStartAtMs,
    confirmMs: executingAtMs - stagedAtMs,
    executeMs: executedAtMs - executingAtMs,
    ranMs: at(metadata.virtualExecutionDuration),
    collectMs: workerEndAtMs - executedAtMs,
    workerEndAtMs,
  };
}

async function perform(asked: ExecAsked): Promise<ExecDid> {
  if (asked.kind === "execute") return await execute(asked);
  await prepare(asked);
  return { seconds: 0, samples: [] };
}

answering(perform);
