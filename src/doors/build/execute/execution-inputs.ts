/** What an action consists of, read from the store: the action, its command and its input tree. */
import { type Digest, type DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { Action, Command } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, type Message } from "#wire/message.ts";
import { checkNodeProperties, requestedOutputs } from "#worker/outputs/collect.ts";
import { checkWorkingDirectory, resolveOutput } from "#worker/stage/paths.ts";
import { directoriesOf } from "#worker/stage/stage.ts";
import { MissingInputs, type Trees } from "#worker/stage/tree.ts";
import { digestOfWire } from "#doors/build/digests.ts";
import { invalid } from "#doors/build/refusals.ts";

/** Larger messages are not a real command; ten thousand output names fit. */
const messageBytesMax = 16 * 1024 * 1024;

export type ReadAction = { readonly action: Action; readonly command: Command; readonly inputRoot: Digest };

/** Throws MissingInputs when either is missing, and INVALID_ARGUMENT when either cannot be decoded (REAPI-53). */
export async function readAction(digest: Digest, fn: DigestFunction, blobs: BlobStore): Promise<ReadAction> {
  const action = await message(Action, digest, blobs, "the action");
  const commandDigest = digestOfWire(action.commandDigest, fn, "the action's command_digest");
  const inputRoot = digestOfWire(action.inputRootDigest, fn, "the action's input_root_digest");
  try {
    return { action, command: await message(Command, commandDigest, blobs, "the command"), inputRoot };
  } catch (error) {
    if (!(error instanceof MissingInputs)) throw error;
    throw new WithoutCommand(error.digests, inputRoot);
  }
}

/** The command is missing; nothing is known of the inputs yet. */
class WithoutCommand extends MissingInputs {
  readonly inputRoot: Digest;
  constructor(digests: readonly Digest[], inputRoot: Digest) {
    super(digests);
    this.inputRoot = inputRoot;
  }
}

async function message<T>(type: Message<T>, digest: Digest, blobs: BlobStore, what: string): Promise<T> {
  if (Number(digest.slice(digest.lastIndexOf("/") + 1)) > messageBytesMax)
    throw invalid(`${what} is larger than ${messageBytesMax} bytes`);
  let bytes: Uint8Array;
  try {
    bytes = await wholeBlob(blobs, digest);
  } catch (error) {
    throw isFault(error, "not-found") ? new MissingInputs([digest]) : error;
  }
  try {
    return decode(type, bytes);
  } catch (error) {
    throw isFault(error, "invalid") ? invalid(`${what} cannot be read: ${error.message}`) : error;
  }
}

/** REAPI-51: the action with everything that it needs, or everything that is missing, at once. */
export async function wholeAction(
  digest: Digest,
  fn: DigestFunction,
  blobs: BlobStore,
  trees: Trees,
): Promise<ReadAction> {
  try {
    const read = await readAction(digest, fn, blobs);
    checkPaths(read.command);
    const missing = await missingInputs(read.inputRoot, fn, blobs, trees);
    if (missing.length > 0) throw new MissingInputs(missing);
    return read;
  } catch (error) {
    if (!(error instanceof WithoutCommand)) throw error;
    throw new MissingInputs([...error.digests, ...(await missingInputs(error.inputRoot, fn, blobs, trees))]);
  }
}

async function missingInputs(
  root: Digest,
  fn: DigestFunction,
  blobs: BlobStore,
  trees: Trees,
): Promise<readonly Digest[]> {
  try {
    const tree = await trees.layOut(root, directoriesOf(blobs), fn, { absoluteLinks: "allowed" });
    return await blobs.missing(tree.digests);
  } catch (error) {
    if (error instanceof MissingInputs) return error.digests;
    throw error;
  }
}

/** REAPI-75, REAPI-82: invalid paths are refused before the client waits for a worker. */
function checkPaths(command: Command): void {
  const directory = checkWorkingDirectory(command.workingDirectory);
  checkNodeProperties(command.outputNodeProperties);
  for (const { path } of requestedOutputs(command)) resolveOutput(directory, path);
}
