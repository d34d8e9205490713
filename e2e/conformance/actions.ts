/** Actions for the cases: built, sent and followed as a client would. */
import { equal, ok } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { noCommand } from "#doors/build/testing/build.ts";
import { detailsOf, GrpcError, isGrpcError } from "#grpc/status.ts";
import type { CallOptions } from "#grpc/client.ts";
import {
  Action,
  ActionResult,
  Command,
  ExecuteOperationMetadata,
  ExecuteResponse,
  Execution,
  ExecutionStage_Value as Stage,
  type Digest,
  type ExecuteRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Operation } from "#wire/generated/google/longrunning/operations.ts";
import { PreconditionFailure, RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import type { Status } from "#wire/generated/google/rpc/status.ts";
import { decode, encode } from "#wire/message.ts";
import { at, needs, type Case } from "./case.ts";
import { batchUpdateBlobs, code, codeOf, digestOf, readAll, readName, result as resultOf, type Lab } from "./lab.ts";
import { inputTree, type Inputs } from "./trees.ts";

export const { execute, waitExecution } = Execution.methods;

/** A case that needs a server which executes actions, on machines with a shell and the usual tools. */
export const onWorkers = (item: number, title: string, run: Case["run"]): Case =>
  at(item, title, async (lab) => {
    needs(lab.capabilities.executionCapabilities?.execEnabled, "a server that executes actions");
    await run(lab);
  });

export type Making = {
  readonly inputs?: Inputs;
  /** Instead of `inputs`: a directory that exists, or does not. */
  readonly root?: Digest;
  readonly command?: Partial<Command>;
  readonly action?: Partial<Action>;
  /** Parts that are named and not uploaded: "action", "command", or a path among the inputs. */
  readonly withhold?: readonly string[];
};

export type Made = { readonly digest: Digest; readonly withheld: readonly Digest[] };

/** Uploads an action that was never executed before, except for what is withheld. */
export async function make(lab: Lab, words: readonly string[], making: Making = {}): Promise<Made> {
  const { inputs = {}, root, command = {}, action = {}, withhold = [] } = making;
  const bytes = new Map<string, Buffer>();
  const inputRootDigest = root ?? inputTree(inputs, bytes);
  const environmentVariables = [{ name: "PATH", value: "/usr/bin:/bin" }];
  // What is to be missing must be new to the server.
  if (withhold.includes("command")) environmentVariables.push({ name: "SALT", value: randomBytes(8).toString("hex") });
  bytes.set("command", encode(Command, { ...noCommand, arguments: words, environmentVariables, ...command }));
  const platform = lab.platform.length > 0 ? { platform: { properties: lab.platform } } : {};
  const commandDigest = digestOf(bytes.get("command") ?? Buffer.alloc(0));
  const salt = randomBytes(16);
  bytes.set(
    "action",
    encode(Action, { commandDigest, inputRootDigest, doNotCache: false, salt, ...platform, ...action }),
  );
  const withheld = withhold.map((part) => digestOf(bytes.get(part) ?? Buffer.from(`no part ${part}`)));
  const hidden = new Set(withheld.map(({ hash }) => hash));
  await putAll(
    lab,
    [...bytes.values()].filter((one) => one.length > 0 && !hidden.has(digestOf(one).hash)),
  );
  return { digest: digestOf(bytes.get("action") ?? Buffer.alloc(0)), withheld };
}

/** A shell line. */
export const sh = async (lab: Lab, line: string, making?: Making): Promise<Digest> =>
  (await make(lab, ["/bin/sh", "-c", line], making)).digest;

export async function putAll(lab: Lab, blobs: readonly Buffer[]): Promise<void> {
  const requests = blobs.map((data) => ({ digest: digestOf(data), data, compressor: 0 }));
  for (let from = 0; from < requests.length; from += 500) {
    const some = requests.slice(from, from + 500);
    const request = { instanceName: lab.instance, requests: some, digestFunction: 0 };
    const { responses } = await lab.client.unary(batchUpdateBlobs, request);
    for (const { status } of responses) equal(status?.code ?? 0, 0, "an input is taken");
  }
}

export type Asking = Partial<ExecuteRequest> & {
  readonly options?: CallOptions;
  /** Called with every message before the next one is requested. */
  readonly each?: (operation: Operation) => Promise<void>;
};

export function stream(lab: Lab, actionDigest: Digest, asking: Asking = {}): AsyncGenerator<Operation> {
  const { options, each: _each, ...more } = asking;
  const request: ExecuteRequest = {
    instanceName: lab.instance,
    skipCacheLookup: false,
    actionDigest,
    digestFunction: 0,
    inlineStdout: false,
    inlineStderr: false,
    inlineOutputFiles: [],
    ...more,
  };
  return lab.client.serverStream(execute, request, options);
}

export type Run = {
  readonly operations: readonly Operation[];
  readonly name: string;
  readonly response: ExecuteResponse;
  /** Empty where there is none. */
  readonly result: ActionResult;
};

/** Executes it and follows it to its end; waits by name if the server ends the stream early (REAPI-49). */
export const run = async (lab: Lab, action: Digest, asking: Asking = {}): Promise<Run> =>
  followed(lab, stream(lab, action, asking), asking.each);

export const wait = async (lab: Lab, name: string): Promise<Run> =>
  followed(lab, lab.client.serverStream(waitExecution, { name }));

async function followed(lab: Lab, first: AsyncIterable<Operation>, each?: Asking["each"]): Promise<Run> {
  const operations: Operation[] = [];
  for (let from = first, turns = 0; turns < 20 && operations.at(-1)?.done !== true; turns += 1) {
    for await (const operation of from) {
      operations.push(operation);
      await each?.(operation);
    }
    const { name = "" } = operations.at(-1) ?? {};
    from = lab.client.serverStream(waitExecution, { name });
  }
  const last = operations.at(-1);
  ok(last?.done, "the operation never ended");
  const response = responseOf(last);
  return { operations, name: last.name, response, result: response.result ?? noResult };
}

const noResult = decode(ActionResult, new Uint8Array());

export function responseOf({ result }: Operation): ExecuteResponse {
  ok(result?.kind === "response", "an operation that is done has a response (REAPI-47, REAPI-49)");
  return decode(ExecuteResponse, result.value.value);
}

export const isExecuting = (operation: Operation): boolean => metadataOf(operation).stage === Stage.EXECUTING;

export const metadataOf = ({ metadata }: Operation): ExecuteOperationMetadata => {
  ok(metadata, "every message has metadata (REAPI-48)");
  return decode(ExecuteOperationMetadata, metadata.value);
};

/** Starts it; returns when it runs. The run must still be awaited. */
export async function begin(lab: Lab, action: Digest): Promise<{ readonly ended: Promise<Run> }> {
  const begun = Promise.withResolvers<void>();
  const ended = run(lab, action, {
    each: async (operation) => {
      if (operation.done || isExecuting(operation)) begun.resolve();
    },
  });
  await Promise.race([begun.promise, ended]);
  return { ended };
}

/** It ran, and ended with 0. */
export async function ranWell(lab: Lab, action: Digest, asking: Asking = {}): Promise<Run> {
  const ran = await run(lab, action, asking);
  equal(ran.response.status?.code ?? 0, 0, `its status: ${ran.response.status?.message}`);
  equal(ran.result.exitCode, 0, `its exit code: ${await printed(lab, ran.result, "stderr")}`);
  return ran;
}

/** How an execution was refused: by the call itself, or within the answer. Both are allowed. */
export async function refusal(lab: Lab, action: Digest, asking: Asking = {}): Promise<Status> {
  try {
    const { response } = await run(lab, action, asking);
    return response.status ?? { code: 0, message: "it was executed", details: [] };
  } catch (error) {
    if (!isGrpcError(error)) throw error;
    return { code: error.code, message: error.message, details: [...error.details] };
  }
}

export async function refused(lab: Lab, action: Digest, allowed: readonly number[], what: string): Promise<void> {
  const { code: got, message } = await refusal(lab, action);
  ok(allowed.includes(got), `${what}: ended with ${got} (${message}), should be ${allowed.join(" or ")}`);
}

const asError = ({ code: number, message, details }: Status): GrpcError => new GrpcError(number, message, details);

/** The missing blobs in the status, each as `type subject`. */
export const violationsOf = (status: Status): readonly string[] =>
  detailsOf(asError(status), PreconditionFailure)
    .flatMap(({ violations }) => violations)
    .map(({ type, subject }) => `${type} ${subject}`)
    .toSorted();

export const saysWhenToRetry = (status: Status): boolean => detailsOf(asError(status), RetryInfo).length > 0;

export const isCached = async (lab: Lab, action: Digest): Promise<boolean> =>
  (await codeOf(resultOf(lab, action))) !== code.notFound;

/** What it printed, inlined or in the store. */
export async function printed(lab: Lab, result: ActionResult, what: "stdout" | "stderr"): Promise<string> {
  return (await printedBytes(lab, result, what)).toString();
}

export async function printedBytes(lab: Lab, result: ActionResult, what: "stdout" | "stderr"): Promise<Buffer> {
  const [raw, digest] =
    what === "stdout" ? [result.stdoutRaw, result.stdoutDigest] : [result.stderrRaw, result.stderrDigest];
  if (raw !== undefined && raw.length > 0) return Buffer.from(raw);
  return digest && digest.sizeBytes > 0 ? await readAll(lab, readName(lab, digest)) : Buffer.alloc(0);
}

export async function outputText(lab: Lab, { outputFiles }: ActionResult, path: string): Promise<string> {
  const file = outputFiles.find((one) => one.path === path);
  ok(file?.digest, `there is no output ${path}`);
  return file.digest.sizeBytes === 0 ? "" : (await readAll(lab, readName(lab, file.digest))).toString();
}

export const seconds = (given: number) => ({ seconds: Math.floor(given), nanos: Math.round((given % 1) * 1e9) });

export const versionOf = ({ capabilities: { highApiVersion } }: Lab): number =>
  (highApiVersion?.major ?? 2) * 100 + (highApiVersion?.minor ?? 0);
