/** A whole node that executes actions, and a client that uses the raw protocol: for tests. */
import { createHash, randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { noCommand } from "#doors/build/testing/build.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { GrpcClient, type CallOptions } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import {
  Action,
  Command,
  ContentAddressableStorage,
  Directory,
  ExecuteOperationMetadata,
  ExecuteResponse,
  Execution,
  RequestMetadata,
  type Digest,
  type ExecuteRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Operation } from "#wire/generated/google/longrunning/operations.ts";
import { decode, encode } from "#wire/message.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import type { BuildAction } from "#wire/generated/millrace/build/v1/builds.ts";

export type Words = Readonly<Record<string, string>>;

/** Callers in tests: members of two tenants, and a read-only one of the first. */
export const secrets = { mill: randomUUID(), bakery: randomUUID(), reader: randomUUID() };

export const tokensFor = (millRoles: readonly string[]) =>
  (
    [
      ["mill", "mill", millRoles],
      ["bakery", "bakery", ["member"]],
      ["reader", "mill", ["cache-reader"]],
    ] as const
  ).map(([name, tenant, roles]) => ({ name, tenant, roles, sha256: tokenSha256(secrets[name]) }));

export const executing = (action: Digest, more: Partial<ExecuteRequest> = {}): ExecuteRequest => ({
  instanceName: "",
  skipCacheLookup: false,
  actionDigest: action,
  digestFunction: 0,
  inlineStdout: false,
  inlineStderr: false,
  inlineOutputFiles: [],
  ...more,
});

export type Played = {
  readonly operations: readonly Operation[];
  /** In the order of the messages. */
  readonly stages: readonly number[];
  readonly name: string;
  readonly response: ExecuteResponse;
};

export const wireDigest = (bytes: Uint8Array): Digest => ({
  hash: createHash("sha256").update(bytes).digest("hex"),
  sizeBytes: bytes.length,
});

export type LabSettings = Readonly<Record<string, object>>;

export class Lab implements AsyncDisposable {
  readonly #root = mkdtempSync(join(tmpdir(), "millrace-execution-"));
  readonly #settings: LabSettings;
  readonly #clients: GrpcClient[] = [];
  readonly log: string[] = [];
  readonly configFile: string | undefined;
  node: Running | undefined;

  private constructor(settings: LabSettings, configFile: string | undefined) {
    this.#settings = settings;
    this.configFile = configFile;
  }

  /** Everything of it is below. */
  get root(): string {
    return this.#root;
  }

  /** Where actions run: other users must be able to enter it. */
  get #actionsIn(): string {
    const folder = join(this.#root, "actions");
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    chmodSync(this.#root, 0o711);
    return folder;
  }

  static async open(settings: LabSettings = {}, configFile?: string): Promise<Lab> {
    const lab = new Lab(settings, configFile);
    await lab.start();
    return lab;
  }

  async start(): Promise<void> {
    const { worker, ...settings } = this.#settings;
    const config = Config.parse({
      cluster: { shards: 2 },
      edge: { listen: ["127.0.0.1:0"] },
      worker: { actionsIn: this.#actionsIn, ...worker },
      ...settings,
    });
    this.node = await startNode(config, dataFolder(join(this.#root, "data")), {
      log: (line) => this.log.push(line),
      configFile: this.configFile,
    });
  }

  /** The token of the node's operator. */
  get owner(): string {
    return this.node?.owner ?? "";
  }

  /** Without a token it is anonymous: it may run builds where the node allows anonymous callers, and nothing else. */
  client(token?: string): GrpcClient {
    const client = new GrpcClient({
      clock,
      authority: "lab",
      connect: () => connectH2({ host: "127.0.0.1", port: this.node?.edgePorts[0] ?? 0, clock }),
      metadata: token === undefined ? [] : [["authorization", `Bearer ${token}`]],
    });
    this.#clients.push(client);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.node?.stop();
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 5, retryDelay: 1_000 });
  }
}

/** Builds and sends messages, as a client would. */
export class Bench {
  readonly grpc: GrpcClient;
  /** What would have been uploaded, and was not. */
  readonly withheld = new Set<string>();

  constructor(grpc: GrpcClient) {
    this.grpc = grpc;
  }

  async put(bytes: Uint8Array | string, upload = true): Promise<Digest> {
    const data = Buffer.from(bytes);
    const digest = wireDigest(data);
    if (!upload) this.withheld.add(`blobs/${digest.hash}/${digest.sizeBytes}`);
    else if (data.length > 0)
      await this.grpc.unary(ContentAddressableStorage.methods.batchUpdateBlobs, {
        instanceName: "",
        requests: [{ digest, data, compressor: 0 }],
        digestFunction: 0,
      });
    return digest;
  }

  /** { "a/b": bytes, "run*": executable, "to@": a link, "d/": empty folder }; `upload` by path, "" being the root. */
  async tree(words: Words, upload: (path: string) => boolean = () => true, at = ""): Promise<Digest> {
    const files = [];
    const symlinks = [];
    const below = new Map<string, Record<string, string>>();
    for (const [path, value] of Object.entries(words)) {
      const [first = "", ...rest] = path.split("/");
      if (rest.length > 0)
        below.set(first, { ...below.get(first), ...(rest.join("/") && { [rest.join("/")]: value }) });
      else if (path.endsWith("@")) symlinks.push({ name: path.slice(0, -1), target: value });
      else {
        const isExecutable = path.endsWith("*");
        const name = isExecutable ? path.slice(0, -1) : path;
        files.push({ name, isExecutable, digest: await this.put(value, upload(at + path)) });
      }
    }
    const directories = [];
    for (const [name, inside] of below)
      directories.push({ name, digest: await this.tree(inside, upload, `${at}${name}/`) });
    return await this.put(encode(Directory, { files, directories, symlinks }), upload(at));
  }

  async action(
    command: Partial<Command>,
    words: Words = {},
    more: Partial<Action> & { readonly upload?: (part: string) => boolean } = {},
  ): Promise<Digest> {
    const { upload = () => true, ...rest } = more;
    const commandDigest = await this.put(encode(Command, { ...noCommand, ...command }), upload("command"));
    const inputRootDigest = await this.tree(words, upload);
    const action: Action = { commandDigest, inputRootDigest, doNotCache: false, salt: new Uint8Array(), ...rest };
    return await this.put(encode(Action, action), upload("action"));
  }

  /** A shell line, with the usual path. */
  sh(line: string, more: Partial<Command> = {}, words: Words = {}, rest: Partial<Action> = {}): Promise<Digest> {
    const environmentVariables = [{ name: "PATH", value: "/usr/bin:/bin" }];
    return this.action({ arguments: ["/bin/sh", "-c", line], environmentVariables, ...more }, words, rest);
  }

  async execute(action: Digest, more: Partial<ExecuteRequest> = {}, options?: CallOptions): Promise<Played> {
    return await play(this.grpc.serverStream(Execution.methods.execute, executing(action, more), options));
  }

  /** As a build tool that names the action's target. */
  async executeFor(target: string, action: Digest): Promise<Played> {
    const value = encode(RequestMetadata, {
      actionId: "",
      toolInvocationId: "",
      correlatedInvocationsId: "",
      actionMnemonic: "Grind",
      targetId: target,
      configurationId: "",
    });
    const name = "build.bazel.remote.execution.v2.requestmetadata-bin";
    return await this.execute(action, {}, { metadata: [[name, value]] });
  }

  async wait(name: string): Promise<Played> {
    return await play(this.grpc.serverStream(Execution.methods.waitExecution, { name }));
  }

  stream(action: Digest, more: Partial<ExecuteRequest> = {}, options?: CallOptions): AsyncGenerator<Operation> {
    return this.grpc.serverStream(Execution.methods.execute, executing(action, more), options);
  }
}

export const metadataOf = ({ metadata }: Operation): ExecuteOperationMetadata =>
  decode(ExecuteOperationMetadata, metadata?.value ?? new Uint8Array());

export function responseOf({ result }: Operation): ExecuteResponse {
  if (result?.kind !== "response") throw new Error("the operation has no response");
  return decode(ExecuteResponse, result.value.value);
}

export async function play(stream: AsyncIterable<Operation>): Promise<Played> {
  const operations: Operation[] = [];
  for await (const operation of stream) operations.push(operation);
  const last = operations.at(-1);
  if (!last) throw new Error("the call ended without a message");
  return {
    operations,
    stages: operations.map((operation) => metadataOf(operation).stage),
    name: last.name,
    response: responseOf(last),
  };
}

/** One action of a build, as it is submitted. */
export const shAction = (key: string, line: string, more: Partial<BuildAction> = {}): BuildAction => ({
  key,
  arguments: ["/bin/sh", "-c", line],
  environment: [{ name: "PATH", value: "/usr/bin:/bin" }],
  workingDirectory: "",
  outputPaths: [],
  inputs: [],
  platform: [],
  timeoutMs: 0,
  doNotCache: false,
  skipCacheLookup: false,
  after: [],
  ...more,
});
