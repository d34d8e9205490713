/** The request of an action to a persistent tool, and which tools it can use: equal keys mean interchangeable tools. */
import { createHash } from "node:crypto";
import { parseDigest, type Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import type { Command } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { FileEntry, Tree } from "#worker/stage/tree.ts";
import type { ToolRequest } from "#worker/tool/tool-codec.ts";
import { expandFlagFiles, toolArguments, type ReadInput } from "#worker/tool/tool-arguments.ts";
import type { ToolDemand } from "#doors/build/execute/plan-platform.ts";

export type ToolPlan = {
  /** Of tools that can serve this request. */
  readonly key: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly request: ToolRequest;
};

/** The action must be run as any other. */
export type NoTool = { readonly why: string };

/** What distinguishes two tools besides the tool itself: who may use it, and what it may do. */
export type ToolTerms = {
  readonly tenant: string;
  readonly demand: ToolDemand;
  readonly network: boolean;
  readonly memoryBytes: number;
  readonly cpus: number;
};

/** Bazel's mark for a file that is part of the tool. */
const mark = "bazel_tool_input";
const flagFileBytesMax = 16 * 1024 * 1024;

export async function planTool(
  command: Command,
  tree: Tree,
  terms: ToolTerms,
  blobs: BlobStore,
): Promise<ToolPlan | NoTool> {
  const words = toolArguments(command.arguments);
  if (!words) return { why: "its command names no flag file" };
  // The tool stays in its folder; another working directory would not be there the next time.
  if (command.workingDirectory !== "") return { why: "it wants to be run in a folder of its inputs" };
  const own = tree.files.filter(isOfTool);
  if (own.length === 0) return { why: "none of its inputs is marked as the tool's" };
  const env = Object.fromEntries(command.environmentVariables.map(({ name, value }) => [name, value]));
  try {
    const request = {
      arguments: await expandFlagFiles(words.flagFiles, reading(tree, blobs)),
      inputs: tree.files.map(({ path, digest }) => ({ path, digest: Buffer.from(hashOf(digest)) })),
    };
    return { key: keyOf(words.start, env, own, terms), argv: words.start, env, request };
  } catch (error) {
    if (!isFault(error)) throw error;
    return { why: error.message };
  }
}

const isOfTool = ({ properties }: FileEntry): boolean =>
  properties?.properties.some(({ name }) => name === mark) === true;

const hashOf = (digest: Digest): string => parseDigest(digest)?.hash ?? "";

const reading =
  (tree: Tree, blobs: BlobStore): ReadInput =>
  async (path) => {
    const file = tree.files.find((one) => one.path === path);
    const isFit = file && (parseDigest(file.digest)?.sizeBytes ?? Infinity) <= flagFileBytesMax;
    return isFit ? await wholeBlob(blobs, file.digest) : undefined;
  };

function keyOf(
  argv: readonly string[],
  env: ToolPlan["env"],
  own: readonly FileEntry[],
  { tenant, demand, network, memoryBytes, cpus }: ToolTerms,
): string {
  const files = own.map(({ path, digest, executable }) => [path, digest, executable]);
  const variables = Object.entries(env).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const all = [tenant, demand.key, demand.protocol, network, memoryBytes, cpus, argv, variables, files];
  return createHash("sha256").update(JSON.stringify(all)).digest("hex");
}
