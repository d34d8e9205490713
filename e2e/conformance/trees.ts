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
