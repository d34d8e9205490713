/**
 * An input tree as flat lists: the folders, files and links to make, in order. Built from directories by digest, each
 * fetched, parsed and checked once and cached.
 *
 * V1 Names are checked before anything is made of them (REAPI-70).
 * V2 A tree's entries are counted before it is laid out: directories can be shared, so that a few can mean millions
 * (REAPI-73).
 * V3 All missing blobs are reported at once.
 */
import { digestText, type Digest, type DigestFunction } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import type {
  Digest as WireDigest,
  Directory,
  NodeProperties,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { checkName } from "./paths.ts";

/** Where directories come from. Throws Fault "not-found" for a missing one. */
export type DirectorySource = {
  directory(digest: Digest): Promise<Directory>;
  /** Which blobs are missing, to report all of them at once. */
  missing?(digests: readonly Digest[]): Promise<readonly Digest[]>;
};

export type FileEntry = {
  readonly path: string;
  readonly digest: Digest;
  readonly executable: boolean;
  readonly properties: NodeProperties | undefined;
};
export type LinkEntry = { readonly path: string; readonly target: string };

/** A folder and what is below it: ranges in the tree's lists, which keep the entries of a folder together. */
export type FolderEntry = {
  readonly path: string;
  readonly digest: Digest;
  /** The end of its subfolders in the list of folders; they begin right after this one. */
  readonly foldersEnd: number;
  readonly files: Part;
  readonly links: Part;
};
export type Part = { readonly from: number; readonly to: number };

export type Tree = {
  /** Parents come first. The root is not included. */
  readonly folders: readonly FolderEntry[];
  readonly files: readonly FileEntry[];
  readonly links: readonly LinkEntry[];
  /** Digests of all directories and files, each once: all must be in the store. */
  readonly digests: readonly Digest[];
};

export type TreeLimits = {
  readonly depthMax: number;
  /** Of all kinds, with shared directories counted as often as they occur. */
  readonly entriesMax: number;
  /** Limits of the cache: directories; and whole trees, by their entries. */
  readonly keptMax: number;
  readonly fetchesMax: number;
};

export const treeLimitsDefault: TreeLimits = { depthMax: 256, entriesMax: 500_000, keptMax: 100_000, fetchesMax: 32 };

/** Blobs that an action needs and that are not in the store. */
export class MissingInputs extends Fault {
  readonly digests: readonly Digest[];
  constructor(digests: readonly Digest[]) {
    super("not-found", "stage inputs", { missing: digests.length, first: digests[0] });
    this.name = "MissingInputs";
    this.digests = digests;
  }
}

export type SymlinkRule = { readonly absoluteLinks: "allowed" | "refused" };

/** A directory, parsed and checked. */
type Node = {
  readonly files: readonly {
    name: string;
    digest: Digest;
    executable: boolean;
    properties: NodeProperties | undefined;
  }[];
  readonly links: readonly { readonly name: string; readonly target: string }[];
  readonly folders: readonly { readonly name: string; readonly digest: Digest }[];
};

export class Trees {
  readonly #limits: TreeLimits;
  /** Least recently used first. */
  readonly #nodes = new Map<Digest, Node>();
  /** Laid-out trees, least recently used first. */
  readonly #laid = new Map<string, Tree>();
  #laidEntries = 0;

  constructor(limits: Partial<TreeLimits> = {}) {
    this.#limits = { ...treeLimitsDefault, ...limits };
  }

  async layOut(root: Digest, source: DirectorySource, fn: DigestFunction, rule: SymlinkRule): Promise<Tree> {
    const key = `${rule.absoluteLinks} ${root}`;
    const laid = this.#laid.get(key);
    if (laid) return this.#remember(key, laid);
    const nodes = await this.#gather(root, source, fn);
    if (rule.absoluteLinks === "refused") refuseAbsolute(nodes);
    this.#count(root, nodes);
    return this.#remember(key, flat(root, nodes));
  }

  /** The caller must check whether its blobs are still there. */
  #remember(key: string, tree: Tree): Tree {
    if (this.#laid.delete(key)) this.#laidEntries -= entriesOf(tree);
    if (entriesOf(tree) > this.#limits.keptMax) return tree;
    this.#laid.set(key, tree);
    this.#laidEntries += entriesOf(tree);
    for (const [oldest, other] of this.#laid) {
      if (this.#laidEntries <= this.#limits.keptMax) break;
      this.#laid.delete(oldest);
      this.#laidEntries -= entriesOf(other);
    }
    return tree;
  }

  /** Everything below the root, level by level, several directories at once. */
  async #gather(root: Digest, source: DirectorySource, fn: DigestFunction): Promise<ReadonlyMap<Digest, Node>> {
    const nodes = new Map<Digest, Node>();
    const missing: Digest[] = [];
    let level: readonly Digest[] = [root];
    for (let depth = 0; level.length > 0; depth += 1) {
      if (depth > this.#limits.depthMax) throw tooMuch("depth", this.#limits.depthMax);
      if (nodes.size + level.length > this.#limits.entriesMax) throw tooMuch("directories", this.#limits.entriesMax);
      const next = new Set<Digest>();
      const { fetchesMax } = this.#limits;
      for (let at = 0; at < level.length; at += fetchesMax) {
        const some = level.slice(at, at + fetchesMax);
        const found = await Promise.all(some.map((digest) => this.#node(digest, source, fn)));
        for (const [index, node] of found.entries()) {
          const digest = some[index] ?? "";
          if (!node) missing.push(digest);
          else nodes.set(digest, node);
          for (const { digest: below } of node?.folders ?? []) if (!nodes.has(below)) next.add(below);
        }
      }
      level = [...next];
    }
    if (missing.length === 0) return nodes;
    const files = [...nodes.values()].flatMap((node) => node.files.map(({ digest }) => digest));
    throw new MissingInputs([...missing, ...((await source.missing?.([...new Set(files)])) ?? [])]);
  }

  async #node(digest: Digest, source: DirectorySource, fn: DigestFunction): Promise<Node | undefined> {
    const kept = this.#nodes.get(digest);
    if (kept) {
      this.#nodes.delete(digest);
      this.#nodes.set(digest, kept);
      return kept;
    }
    try {
      const node = nodeOf(await source.directory(digest), digest, fn);
      this.#nodes.set(digest, node);
      for (const oldest of this.#nodes.keys()) {
        if (this.#nodes.size <= this.#limits.keptMax) break;
        this.#nodes.delete(oldest);
      }
      return node;
    } catch (error) {
      if (isFault(error, "not-found")) return undefined;
      throw error;
    }
  }

  /** V2. Ends, because a directory cannot contain its own digest. */
  #count(root: Digest, nodes: ReadonlyMap<Digest, Node>): void {
    const counted = new Map<Digest, { entries: number; depth: number }>();
    const { entriesMax, depthMax } = this.#limits;
    const visit = (digest: Digest): { entries: number; depth: number } => {
      const known = counted.get(digest);
      if (known) return known;
      const { files = [], links = [], folders = [] } = nodes.get(digest) ?? {};
      const below = folders.map((folder) => visit(folder.digest));
      const entries = below.reduce((sum, one) => sum + one.entries, files.length + links.length + folders.length);
      const depth = 1 + Math.max(0, ...below.map((one) => one.depth));
      if (entries > entriesMax) throw tooMuch("entries", entriesMax);
      if (depth > depthMax) throw tooMuch("depth", depthMax);
      counted.set(digest, { entries, depth });
      return { entries, depth };
    };
    visit(root);
  }
}

const entriesOf = ({ folders, files, links }: Tree): number => 1 + folders.length + files.length + links.length;

const tooMuch = (what: string, max: number): Fault =>
  new Fault("invalid", "stage inputs", { why: `more ${what} than an input tree may have`, max });

function nodeOf(directory: Directory, where: Digest, fn: DigestFunction): Node {
  const names = new Set<string>();
  const checked = (name: string): string => {
    checkName(name, where);
    if (names.has(name))
      throw new Fault("invalid", "read directory", { where, name: JSON.stringify(name), why: "twice" });
    names.add(name);
    return name;
  };
  const digestIn = (digest: WireDigest | undefined): Digest => {
    if (!digest) throw new Fault("invalid", "read directory", { where, why: "an entry without a digest" });
    return digestText(fn, digest.hash, digest.sizeBytes);
  };
  return {
    files: directory.files.map((file) => ({
      name: checked(file.name),
      digest: digestIn(file.digest),
      executable: file.isExecutable,
      properties: file.nodeProperties,
    })),
    folders: directory.directories.map(({ name, digest }) => ({ name: checked(name), digest: digestIn(digest) })),
    links: directory.symlinks.map(({ name, target }) => {
      if (target === "" || target.includes("\0"))
        throw new Fault("invalid", "read directory", {
          where,
          name: JSON.stringify(name),
          why: "a link without a target",
        });
      return { name: checked(name), target };
    }),
  };
}

/** REAPI-74: absolute targets may be disallowed. */
function refuseAbsolute(nodes: ReadonlyMap<Digest, Node>): void {
  for (const [where, { links }] of nodes)
    for (const { name, target } of links)
      if (target.startsWith("/"))
        throw new Fault("invalid", "read directory", {
          where,
          name: JSON.stringify(name),
          why: "the link is absolute",
        });
}

function flat(root: Digest, nodes: ReadonlyMap<Digest, Node>): Tree {
  const folders: FolderEntry[] = [];
  const files: FileEntry[] = [];
  const links: LinkEntry[] = [];
  const visit = (digest: Digest, prefix: string): void => {
    const node = nodes.get(digest);
    if (!node) return;
    for (const { name, digest: content, executable, properties } of node.files)
      files.push({ path: prefix + name, digest: content, executable, properties });
    for (const { name, target } of node.links) links.push({ path: prefix + name, target });
    for (const { name, digest: below } of node.folders) {
      const at = folders.length;
      const [filesFrom, linksFrom] = [files.length, links.length];
      const path = prefix + name;
      folders.push({ path, digest: below, foldersEnd: 0, files: nothing, links: nothing });
      visit(below, `${path}/`);
      const parts = { files: { from: filesFrom, to: files.length }, links: { from: linksFrom, to: links.length } };
      folders[at] = { path, digest: below, foldersEnd: folders.length, ...parts };
    }
  };
  visit(root, "");
  const digests = [...new Set([...nodes.keys(), ...files.map(({ digest }) => digest)])];
  return { folders, files, links, digests };
}

const nothing: Part = { from: 0, to: 0 };
