/**
 * Makes an input tree in an attempt's root: reads and checks the directories, checks that all blobs are there, and lays
 * it out.
 */
import type { Digest, DigestFunction } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { decode } from "#wire/message.ts";
import { Directory } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import type { LaidInputs } from "./left-inputs.ts";
import { Layout, type StagePorts, type StageTarget } from "./layout.ts";
import { checkWorkingDirectory, parentsOf, resolveOutput } from "./paths.ts";
import { MissingInputs, type DirectorySource, type SymlinkRule, type Tree } from "./tree.ts";

export type StageRequest = {
  readonly inputRoot: Digest;
  readonly digestFunction: DigestFunction;
  readonly workingDirectory: string;
  /** Output paths of the command, from either field. */
  readonly outputs: readonly string[];
  readonly symlinks: SymlinkRule;
};

export type Staged = {
  readonly files: number;
  readonly folders: number;
  readonly links: number;
  readonly inputs: LaidInputs;
};

export async function stage(request: StageRequest, target: StageTarget, ports: StagePorts): Promise<Staged> {
  const { inputRoot, digestFunction, symlinks } = request;
  const directories = ports.directories ?? directoriesOf(ports.blobs);
  const tree = await ports.trees.layOut(inputRoot, directories, digestFunction, symlinks);
  const { made, isTouched } = withOutputs(tree, request);
  const missing = await ports.blobs.missing(tree.digests);
  if (missing.length > 0) throw new MissingInputs(missing);
  const layout = new Layout(tree, target, ports);
  await layout.make(made, isTouched);
  const { files, folders, links } = tree;
  return {
    files: files.length,
    folders: folders.length + made.length,
    links: links.length,
    inputs: layout,
  };
}

export const directoriesOf = (blobs: BlobStore): DirectorySource => ({
  async directory(digest) {
    return decode(Directory, await wholeBlob(blobs, digest));
  },
  missing: (digests) => blobs.missing(digests),
});

type Around = {
  /** Folders without inputs that must be created. */
  readonly made: readonly string[];
  /** Whether outputs go into this folder of inputs. */
  readonly isTouched: (path: string) => boolean;
};

/**
 * REAPI-75, REAPI-76: the working directory must exist; parents of outputs are created, the outputs themselves are not.
 */
function withOutputs({ folders, files, links }: Tree, { workingDirectory, outputs }: StageRequest): Around {
  const directory = checkWorkingDirectory(workingDirectory);
  if (directory === "" && outputs.length === 0) return { made: [], isTouched: () => false };
  const known = new Set(folders.map(({ path }) => path));
  if (directory !== "" && !known.has(directory))
    throw new Fault("invalid", "stage inputs", {
      workingDirectory: directory,
      why: "it is not a directory of the input tree",
    });
  const resolved = outputs.map((path) => resolveOutput(directory, path));
  const wanted = resolved.flatMap(parentsOf);
  const touched = new Set([...wanted, ...resolved]);
  const isTouched = (path: string): boolean => touched.has(path);
  if (wanted.length === 0) return { made: [], isTouched };
  const others = new Map<string, string>();
  for (const { path } of files) others.set(path, "a file");
  for (const { path } of links) others.set(path, "a link");
  const made: string[] = [];
  for (const path of wanted) {
    const other = others.get(path);
    if (other !== undefined) throw new OutputParentTaken(path, other);
    if (!known.has(path)) made.push(path);
    known.add(path);
  }
  return { made, isTouched };
}

/** REAPI-76: the request is well-formed but contradicts itself: FAILED_PRECONDITION. */
export class OutputParentTaken extends Fault {
  constructor(path: string, is: string) {
    super("invalid", "stage inputs", { path, why: `the command has outputs below it, but it is ${is}` });
    this.name = "OutputParentTaken";
  }
}
