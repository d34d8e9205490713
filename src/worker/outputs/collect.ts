/**
 * Collects an action's outputs as the Remote Execution API wants them (REAPI-77 to REAPI-82). Runs only after all of
 * the action's processes are dead, so that nothing changes between hashing and uploading.
 */
import { isUtf8 } from "node:buffer";
import { lstatSync, readdirSync, readlinkSync, type Stats } from "node:fs";
import { parseDigest, type Digest, type DigestFunction } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import {
  Command_OutputDirectoryFormat as Format,
  type Command,
  type Digest as WireDigest,
  type Directory,
  type DirectoryNode,
  type FileNode,
  type NodeProperties,
  type OutputDirectory,
  type OutputFile,
  type OutputSymlink,
  type SymlinkNode,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { Pace } from "#worker/visits/pace.ts";
import { resolveOutput } from "#worker/stage/paths.ts";
import type { SymlinkRule } from "#worker/stage/tree.ts";
import { canonicalDirectory, encodeDirectory, encodeTree } from "./canonical.ts";
import { lookInside, type Inside } from "./inside.ts";
import { Uploads, type FoundFile, type UploadLimits } from "./upload.ts";

export type DeclaredOutputs = Pick<
  Command,
  | "workingDirectory"
  | "outputPaths"
  | "outputFiles"
  | "outputDirectories"
  | "outputNodeProperties"
  | "outputDirectoryFormat"
>;

export type CollectOptions = {
  readonly root: string;
  /** The root's path as the action saw it: "/tmp/build" in the sandbox, the root itself outside. */
  readonly seenAs: string;
  readonly digestFunction: DigestFunction;
  readonly symlinks: SymlinkRule;
  readonly entriesMax?: number;
  readonly depthMax?: number;
  readonly uploads?: Partial<UploadLimits>;
};

export type Outputs = {
  readonly outputFiles: readonly OutputFile[];
  readonly outputDirectories: readonly OutputDirectory[];
  readonly outputSymlinks: readonly OutputSymlink[];
  readonly outputFileSymlinks: readonly OutputSymlink[];
  readonly outputDirectorySymlinks: readonly OutputSymlink[];
  /** Everything that the result names; all of it is in the store. */
  readonly digests: readonly Digest[];
};

/** An output that cannot be represented: FAILED_PRECONDITION. */
export class OutputRefused extends Fault {
  constructor(path: string, why: string) {
    super("invalid", "collect output", { path, why });
    this.name = "OutputRefused";
  }
}

type OutputRequest = { readonly path: string; readonly as: "file" | "directory" | "any" };

/** REAPI-82: checked before anything runs. */
export function checkNodeProperties(names: readonly string[]): void {
  const unknown = names.find((name) => name !== "mtime" && name !== "unix_mode");
  if (unknown !== undefined)
    throw new Fault("invalid", "read command", { nodeProperty: unknown, why: "this server does not know it" });
}

/** REAPI-77: the paths that a command wants back, from either field. */
export function requestedOutputs({
  outputPaths,
  outputFiles,
  outputDirectories,
}: DeclaredOutputs): readonly OutputRequest[] {
  if (outputPaths.length > 0) return [...new Set(outputPaths)].map((path) => ({ path, as: "any" }));
  return [
    ...[...new Set(outputFiles)].map((path) => ({ path, as: "file" }) as const),
    ...[...new Set(outputDirectories)].map((path) => ({ path, as: "directory" }) as const),
  ];
}

export async function collectOutputs(
  declared: DeclaredOutputs,
  blobs: BlobStore,
  options: CollectOptions,
): Promise<Outputs> {
  checkNodeProperties(declared.outputNodeProperties);
  const collector = new Collector(declared, options);
  for (const wanted of requestedOutputs(declared)) await collector.take(wanted);
  return await collector.finish(blobs);
}

class Collector {
  readonly #declared: DeclaredOutputs;
  readonly #options: CollectOptions;
  readonly #uploads: Uploads;
  readonly #files: OutputFile[] = [];
  readonly #directories: OutputDirectory[] = [];
  readonly #symlinks: OutputSymlink[] = [];
  readonly #fileSymlinks: OutputSymlink[] = [];
  readonly #directorySymlinks: OutputSymlink[] = [];
  #entries = 0;
  readonly #pace = new Pace();

  constructor(declared: DeclaredOutputs, options: CollectOptions) {
    this.#declared = declared;
    this.#options = options;
    this.#uploads = new Uploads(options.digestFunction, options.uploads);
  }

  async finish(blobs: BlobStore): Promise<Outputs> {
    const digests = await this.#uploads.send(blobs);
    return {
      outputFiles: this.#files,
      outputDirectories: this.#directories,
      outputSymlinks: this.#symlinks,
      outputFileSymlinks: this.#fileSymlinks,
      outputDirectorySymlinks: this.#directorySymlinks,
      digests,
    };
  }

  async take({ path, as }: OutputRequest): Promise<void> {
    const { root, seenAs } = this.#options;
    const found = lookInside(root, resolveOutput(this.#declared.workingDirectory, path), seenAs);
    if (!found) return; // REAPI-78
    const { stats } = found;
    if (stats.isSymbolicLink()) return this.#takeLink(path, as, found);
    if (stats.isDirectory()) {
      if (as === "file") throw new OutputRefused(path, "the command declares a file, but it is a directory");
      this.#directories.push(await this.#directory(path, Buffer.from(found.path)));
    } else if (stats.isFile()) {
      if (as === "directory") throw new OutputRefused(path, "the command declares a directory, but it is a file");
      const { digest, mode, ...rest } = await this.#file(path, Buffer.from(found.path));
      const properties = this.#properties({ mode, ...rest });
      this.#files.push({
        path,
        digest: wire(digest),
        isExecutable: isExecutable(mode),
        contents: new Uint8Array(0),
        ...(properties ? { nodeProperties: properties } : {}),
      });
    } else throw special(path);
  }

  /** REAPI-79: as a symlink, and in the fields of clients before 2.1. */
  #takeLink(path: string, as: OutputRequest["as"], { path: at, stats }: Inside): void {
    const { root, seenAs } = this.#options;
    const target = this.#target(path, Buffer.from(at));
    const properties = this.#properties({ mode: stats.mode, mtimeNs: nsOf(stats) });
    const link = { path, target, ...(properties ? { nodeProperties: properties } : {}) };
    const end = lookInside(root, resolveOutput(this.#declared.workingDirectory, path), seenAs, true);
    const isDirectory = as === "any" ? end?.stats.isDirectory() === true : as === "directory";
    this.#symlinks.push(link);
    (isDirectory ? this.#directorySymlinks : this.#fileSymlinks).push(link);
  }

  async #directory(path: string, at: Buffer): Promise<OutputDirectory> {
    const { digestFunction } = this.#options;
    const format = this.#declared.outputDirectoryFormat;
    const below = new Map<Digest, Directory>();
    const root = await this.#walk(at, path, below, 0);
    const tree = encodeTree(root, [...below.values()], digestFunction);
    this.#uploads.add(tree.digest, tree.bytes);
    const withDirectories = format === Format.DIRECTORY_ONLY || format === Format.TREE_AND_DIRECTORY;
    if (!withDirectories) return { path, treeDigest: wire(tree.digest), isTopologicallySorted: true };
    // REAPI-81
    for (const directory of [root, ...below.values()]) {
      const { digest, bytes } = encodeDirectory(directory, digestFunction);
      this.#uploads.add(digest, bytes);
    }
    const rootDirectoryDigest = wire(encodeDirectory(root, digestFunction).digest);
    return { path, treeDigest: wire(tree.digest), isTopologicallySorted: true, rootDirectoryDigest };
  }

  /** Adds children to `below` before their parents; the caller adds the directory itself. */
  async #walk(at: Buffer, shown: string, below: Map<Digest, Directory>, depth: number): Promise<Directory> {
    const { digestFunction, depthMax = 256 } = this.#options;
    if (depth > depthMax) throw new OutputRefused(shown, "too many nested folders");
    const files: FileNode[] = [];
    const directories: DirectoryNode[] = [];
    const symlinks: SymlinkNode[] = [];
    for (const entry of readdirSync(at, { withFileTypes: true, encoding: "buffer" })) {
      await this.#count(shown);
      const name = nameOf(entry.name, shown);
      const path = Buffer.concat([at, Buffer.from("/"), entry.name]);
      const said = `${shown}/${name}`;
      if (entry.isDirectory()) {
        const directory = await this.#walk(path, said, below, depth + 1);
        const { digest } = encodeDirectory(directory, digestFunction);
        if (!below.has(digest)) below.set(digest, directory);
        directories.push({ name, digest: wire(digest) });
      } else if (entry.isSymbolicLink()) symlinks.push(this.#symlink(name, said, path));
      else if (entry.isFile()) files.push(await this.#fileNode(name, said, path));
      else throw special(said);
    }
    return canonicalDirectory(files, directories, symlinks);
  }

  #symlink(name: string, said: string, path: Buffer): SymlinkNode {
    const stats = this.#declared.outputNodeProperties.length > 0 ? lstatSync(path) : undefined;
    const properties = stats && this.#properties({ mode: stats.mode, mtimeNs: nsOf(stats) });
    return { name, target: this.#target(said, path), ...(properties ? { nodeProperties: properties } : {}) };
  }

  async #fileNode(name: string, said: string, path: Buffer): Promise<FileNode> {
    const { digest, mode, mtimeNs } = await this.#file(said, path);
    const properties = this.#properties({ mode, mtimeNs });
    const node = { name, digest: wire(digest), isExecutable: isExecutable(mode) };
    return properties ? { ...node, nodeProperties: properties } : node;
  }

  async #file(said: string, path: Buffer): Promise<FoundFile> {
    try {
      const found = await this.#uploads.file(path);
      if (found) return found;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EACCES" || code === "EPERM") throw new OutputRefused(said, "it is not readable");
      // A socket, or a device without a driver.
      if (code !== "ENXIO" && code !== "ENODEV") throw error;
    }
    throw special(said);
  }

  #target(said: string, path: Buffer): string {
    const target = readlinkSync(path, "buffer");
    if (!isUtf8(target)) throw new OutputRefused(said, "its target is not UTF-8");
    const text = target.toString();
    if (text.startsWith("/") && this.#options.symlinks.absoluteLinks === "refused")
      throw new OutputRefused(said, "the link is absolute");
    return text;
  }

  #properties({ mode, mtimeNs }: { mode: number; mtimeNs: bigint }): NodeProperties | undefined {
    const names = this.#declared.outputNodeProperties;
    if (names.length === 0) return undefined;
    const second = 1_000_000_000n;
    return {
      properties: [],
      ...(names.includes("mtime")
        ? { mtime: { seconds: Number(mtimeNs / second), nanos: Number(mtimeNs % second) } }
        : {}),
      ...(names.includes("unix_mode") ? { unixMode: { value: mode & 0o7777 } } : {}),
    };
  }

  async #count(shown: string): Promise<void> {
    const { entriesMax = 500_000 } = this.#options;
    this.#entries += 1;
    if (this.#entries > entriesMax) throw new OutputRefused(shown, `more than ${entriesMax} files and folders`);
    if (this.#pace.isLong()) await this.#pace.rest();
  }
}

const special = (path: string): OutputRefused =>
  new OutputRefused(path, "it is neither a file, a directory nor a link");
const isExecutable = (mode: number): boolean => (mode & 0o111) !== 0;
const nsOf = ({ mtimeMs }: Stats): bigint => BigInt(Math.round(mtimeMs * 1e6));

function nameOf(name: Buffer, where: string): string {
  if (!isUtf8(name))
    throw new OutputRefused(where, `a name in it is not UTF-8: ${JSON.stringify(name.toString("latin1"))}`);
  return name.toString();
}

function wire(digest: Digest): WireDigest {
  const { hash = "", sizeBytes = 0 } = parseDigest(digest) ?? {};
  return { hash, sizeBytes };
}
