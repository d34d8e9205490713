/** Puts what a command left behind into the store: its output streams and its output files. */
import type { Digest, DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { grpcCode } from "#grpc/status.ts";
import type { ActionResult, Command } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Status } from "#wire/generated/google/rpc/status.ts";
import { collectOutputs, OutputRefused, type CollectOptions, type Outputs } from "#worker/outputs/collect.ts";
import { Uploads } from "#worker/outputs/upload.ts";
import type { AttemptFolder } from "#worker/sandbox/folders/attempt-folder.ts";
import { boxRoot } from "#worker/sandbox/box.ts";
import type { Ran } from "#worker/sandbox/command.ts";
import type { Sandbox } from "#worker/sandbox/sandbox.ts";
import { wireOf } from "#doors/build/digests.ts";
import { failed, retryable } from "#doors/build/execute/view-failure.ts";

export type Collecting = {
  readonly command: Command;
  readonly folder: AttemptFolder;
  readonly ran: Ran;
  readonly fn: DigestFunction;
  readonly timeoutMs: number;
  readonly symlinks: CollectOptions["symlinks"];
  readonly sandbox: Pick<Sandbox, "about">;
  readonly blobs: BlobStore;
};

export type Collected = {
  readonly result: ActionResult;
  readonly status: Status | undefined;
  readonly digests: readonly Digest[];
};

export async function collectAll(from: Collecting): Promise<Collected> {
  const { ran } = from;
  const { stdout, stderr, logs } = await printedBy(from).catch((error: unknown) => {
    // The store may be on the full disk: reporting that it is full matters more than the output.
    if (ran.why === "disk-full" && isFault(error)) return { stdout: undefined, stderr: undefined, logs: [] };
    throw error;
  });
  const { outputs, status } = await outputsOf(from);
  const { digests, ...paths } = outputs;
  const result: ActionResult = {
    ...paths,
    exitCode: ran.exitCode,
    stdoutRaw: noBytes,
    stderrRaw: noBytes,
    ...(stdout && { stdoutDigest: wireOf(stdout.digest) }),
    ...(stderr && { stderrDigest: wireOf(stderr.digest) }),
  };
  return { result, status, digests: [...logs, ...digests] };
}

async function printedBy({ folder, ran, fn, blobs }: Collecting) {
  const printed = new Uploads(fn);
  const stdout = ran.stdout.bytes > 0 ? await printed.file(Buffer.from(folder.stdout)) : undefined;
  const stderr = ran.stderr.bytes > 0 ? await printed.file(Buffer.from(folder.stderr)) : undefined;
  return { stdout, stderr, logs: stdout || stderr ? await printed.send(blobs) : [] };
}

/** REAPI-55: what a command made before its timeout may be inspected, and nothing more. */
async function outputsOf({ command, folder: { root }, ran, fn, timeoutMs, symlinks, sandbox, blobs }: Collecting) {
  const trouble = troubleOf(ran, timeoutMs);
  // Outputs that filled a disk are not returned.
  if (ran.why === "disk-full") return { outputs: noOutputs, status: trouble };
  const seenAs = sandbox.about.kind === "bubblewrap" ? boxRoot : root;
  try {
    const outputs = await collectOutputs(command, blobs, { root, seenAs, digestFunction: fn, symlinks });
    return { outputs, status: trouble };
  } catch (error) {
    if (!(error instanceof OutputRefused)) throw error;
    return { outputs: noOutputs, status: trouble ?? failed(grpcCode.failedPrecondition, error.message) };
  }
}

const noBytes = new Uint8Array();
const noOutputs: Outputs = {
  outputFiles: [],
  outputDirectories: [],
  outputSymlinks: [],
  outputFileSymlinks: [],
  outputDirectorySymlinks: [],
  digests: [],
};

/** REAPI-84: a command may not notice that one of its processes ran out of memory; its outputs cannot be trusted. */
function troubleOf({ why, message, outOfMemory, exitCode }: Ran, timeoutMs: number): Status | undefined {
  if (why === "timed-out") return failed(grpcCode.deadlineExceeded, `the command was ended after ${timeoutMs} ms`);
  if (why === "disk-full") return retryable(grpcCode.resourceExhausted, message ?? why);
  if (!outOfMemory || exitCode !== 0) return undefined;
  return retryable(grpcCode.resourceExhausted, "a part of the command ran out of the memory it may have");
}
