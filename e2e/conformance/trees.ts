/** Directories and trees for the cases. */
import {
  ContentAddressableStorage,
  Directory,
  Tree,
  type Digest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode } from "#wire/message.ts";
import { rawTreePage } from "#wire/raw-message.ts";
import { digestOf, type Lab } from "./lab.ts";

export const fileNode = (name: string, digest: Digest) => ({ name, digest, isExecutable: false });

type Content = {
  readonly files?: readonly ReturnType<typeof fileNode>[];
  /** By name: the bytes of a directory. */
  readonly directories?: Readonly<Record<string, Uint8Array>>;
};

export const directory = ({ files = [], directories = {} }: Content): Buffer =>
  encode(Directory, {
    files,
    directories: Object.entries(directories).map(([name, bytes]) => ({ name, digest: digestOf(bytes) })),
    symlinks: [],
  });

/** An input tree as text: `a/b` a file, `run*` an executable one, `to@` a symbolic link, `d/` an empty folder. */
export type Inputs = Readonly<Record<string, string | Uint8Array>>;

/** The root's digest. Puts all bytes into `bytes` by path: directories are `path/`, the root is "/". */
export function inputTree(inputs: Inputs, bytes: Map<string, Buffer>, at = "/"): Digest {
  const files = [];
  const symlinks = [];
  const below = new Map<string, Record<string, string | Uint8Array>>();
  for (const [path, value] of Object.entries(inputs)) {
    const [first = "", ...rest] = path.split("/");
    const inside = rest.join("/");
    if (rest.length > 0) below.set(first, { ...below.get(first), ...(inside && { [inside]: value }) });
    else if (path.endsWith("@")) symlinks.push({ name: path.slice(0, -1), target: Buffer.from(value).toString() });
    else {
      const name = path.endsWith("*") ? path.slice(0, -1) : path;
      bytes.set(at.slice(1) + name, Buffer.from(value));
      files.push({ name, isExecutable: path.endsWith("*"), digest: digestOf(Buffer.from(value)) });
    }
  }
  const directories = [...below].map(([name, inside]) => ({ name, digest: inputTree(inside, bytes, `${at}${name}/`) }));
  const sorted = <T extends { readonly name: string }>(all: readonly T[]): readonly T[] =>
    all.toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  const own = encode(Directory, { files: sorted(files), directories: sorted(directories), symlinks: sorted(symlinks) });
  bytes.set(at === "/" ? at : at.slice(1), own);
  return digestOf(own);
}

export const tree = (root: Uint8Array, children: readonly Uint8Array[] = []): Buffer =>
  encode(Tree, { root: decode(Directory, root), children: children.map((bytes) => decode(Directory, bytes)) });

type Paging = {
  readonly pageSize?: number;
  readonly pageToken?: string;
  readonly page?: (size: number, token: string) => void;
};

/** The directories of all pages, as the bytes that they came in. */
export async function treeOf(
  lab: Lab,
  rootDigest: Digest,
  { pageSize = 0, pageToken = "", page }: Paging = {},
): Promise<readonly Buffer[]> {
  const method = { ...ContentAddressableStorage.methods.getTree, response: rawTreePage };
  const found: Buffer[] = [];
  const request = { instanceName: lab.instance, rootDigest, pageSize, pageToken, digestFunction: 0 };
  for await (const { directories, nextPageToken } of lab.client.serverStream(method, request)) {
    page?.(directories.length, nextPageToken);
    for (const bytes of directories) found.push(Buffer.from(bytes));
  }
  return found;
}
