/**
 * Makes an input tree in an attempt's root: folders, then files, then symbolic links, so that nothing is ever made
 * through a link (74). Files are hard links to the cache where what runs is another user, who can change none of
 * them; elsewhere they are copies (72).
 */
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  lchownSync,
  linkSync,
  mkdirSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import type { Digest, DigestFunction } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { decode } from "#wire/message.ts";
import { Directory, type NodeProperties } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { Pace } from "#worker/pace.ts";
import type { LinkCache } from "./link-cache.ts";
import { checkWorkingDirectory, parentsOf, resolveOutput } from "./paths.ts";
import {
  MissingInputs,
  type DirectorySource,
  type FileEntry,
  type LinkEntry,
  type SymlinkRule,
  type Tree,
  type Trees,
} from "./tree.ts";

export type StageRequest = {
  readonly inputRoot: Digest;
  readonly digestFunction: DigestFunction;
  readonly workingDirectory: string;
  /** As the command says them; whatever they are called there. */
  readonly outputs: readonly string[];
  readonly symlinks: SymlinkRule;
};

export type StagePorts = {
  readonly trees: Trees;
  readonly links: LinkCache;
  /** As the action's tenant sees it: what the tenant was not given is missing (B5). */
  readonly blobs: BlobStore;
  /** Where directories come from; by default, the blobs. */
  readonly directories?: DirectorySource;
};

export type StageTarget = {
  readonly root: string;
  /** Whose the folders become. */
  readonly uid: number | undefined;
  /** "link" only where what runs is not the owner of the cache's files. */
  readonly files: "link" | "copy";
};

export type Staged = { readonly files: number; readonly folders: number; readonly links: number };

export async function stage(request: StageRequest, target: StageTarget, ports: StagePorts): Promise<Staged> {
  const { inputRoot, digestFunction, symlinks } = request;
  const directories = ports.directories ?? directoriesOf(ports.blobs);
  const tree = await ports.trees.layOut(inputRoot, directories, digestFunction, symlinks);
  const folders = withOutputs(tree, request);
  const wanted = [...new Set([...tree.directories, ...tree.files.map(({ digest }) => digest)])];
  const missing = await ports.blobs.missing(wanted);
  if (missing.length > 0) throw new MissingInputs(missing);
  using _held = await ports.links.hold(tree.files, ports.blobs);
  const pace = new Pace();
  for (const path of folders) {
    makeFolder(join(target.root, path), target.uid);
    if (pace.isLong()) await pace.rest();
  }
  for (const file of tree.files) {
    const copying = makeFile(file, target, ports.links);
    if (copying) await copying;
    else if (pace.isLong()) await pace.rest();
  }
  for (const link of tree.links) {
    makeLink(link, target);
    if (pace.isLong()) await pace.rest();
  }
  return { files: tree.files.length, folders: folders.length, links: tree.links.length };
}

export const directoriesOf = (blobs: BlobStore): DirectorySource => ({
  async directory(digest) {
    return decode(Directory, await wholeBlob(blobs, digest));
  },
  missing: (digests) => blobs.missing(digests),
});

/** 75, 76: the working directory has to be there; what is above each output is made, the output itself is not. */
function withOutputs({ folders, files, links }: Tree, { workingDirectory, outputs }: StageRequest): readonly string[] {
  const known = new Set(folders);
  const directory = checkWorkingDirectory(workingDirectory);
  if (directory !== "" && !known.has(directory))
    throw new Fault("invalid", "stage inputs", { workingDirectory: directory, why: "no directory of the input tree" });
  const wanted = outputs.map((path) => resolveOutput(directory, path)).flatMap(parentsOf);
  if (wanted.length === 0) return folders;
  const others = new Map<string, string>();
  for (const { path } of files) others.set(path, "a file");
  for (const { path } of links) others.set(path, "a link");
  const added: string[] = [];
  for (const path of wanted) {
    const other = others.get(path);
    if (other !== undefined) throw new OutputParentTaken(path, other);
    if (!known.has(path)) added.push(path);
    known.add(path);
  }
  return [...folders, ...added];
}

/** 76: not the client's grammar is wrong but what it put together: FAILED_PRECONDITION. */
export class OutputParentTaken extends Fault {
  constructor(path: string, is: string) {
    super("invalid", "stage inputs", { path, why: `outputs are to be below it, but it is ${is}` });
    this.name = "OutputParentTaken";
  }
}

function makeFolder(path: string, uid: number | undefined): void {
  mkdirSync(path, { mode: 0o755 });
  if (uid !== undefined) chownSync(path, uid, uid);
}

function makeLink({ path, target: to }: LinkEntry, { root, uid }: StageTarget): void {
  symlinkSync(to, join(root, path));
  if (uid !== undefined) lchownSync(join(root, path), uid, uid);
}

/** Larger ones are copied off this thread. */
const copiedHereMax = 256 * 1024;

/** A promise only where there is something to wait for. */
function makeFile(file: FileEntry, target: StageTarget, cache: LinkCache): Promise<void> | undefined {
  const from = cache.path(file.digest, file.executable);
  const to = join(target.root, file.path);
  if (target.files === "link" && !isSpecial(file.properties)) {
    try {
      linkSync(from, to);
      return undefined;
    } catch (error) {
      // An inode takes only so many names; another file system, none.
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "EMLINK" && code !== "EXDEV")
        throw new Fault("unavailable", "stage input", { path: file.path, code }, error);
    }
  }
  const size = Number(file.digest.slice(file.digest.indexOf("/") + 1));
  if (size > copiedHereMax) return copyFile(from, to, constants.COPYFILE_FICLONE).then(() => settle(file, to));
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  settle(file, to);
  return undefined;
}

const isSpecial = (properties: NodeProperties | undefined): boolean =>
  properties?.mtime !== undefined || properties?.unixMode !== undefined;

/** 82: what a file's node properties ask for; a copy has the time of the copying otherwise. */
function settle({ properties, executable }: FileEntry, path: string): void {
  const mode = properties?.unixMode?.value;
  // Never writable, whatever was asked for; and no special bits.
  chmodSync(path, mode === undefined ? (executable ? 0o555 : 0o444) : (mode & 0o555) | (executable ? 0o111 : 0));
  const { seconds, nanos } = properties?.mtime ?? { seconds: fixedSeconds, nanos: 0 };
  utimesSync(path, seconds + nanos / 1e9, seconds + nanos / 1e9);
}

const fixedSeconds = Date.UTC(2000, 0, 1) / 1000;
