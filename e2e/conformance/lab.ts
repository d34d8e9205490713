/** What cases work with: connections to the server, and short functions for its calls. */
import { equal, ok } from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { DigestFunction } from "#base/digest.ts";
import { hashHex } from "#blobs/hashing.ts";
import type { CallOptions, GrpcClient } from "#grpc/client.ts";
import { isGrpcError } from "#grpc/status.ts";
import {
  ActionCache,
  Compressor_Value,
  ContentAddressableStorage,
  DigestFunction_Value,
  type ActionResult,
  type Digest,
  type ServerCapabilities,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream, type WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";

export type Property = { readonly name: string; readonly value: string };

export type Lab = {
  readonly address: { readonly host: string; readonly port: number };
  readonly client: GrpcClient;
  /** May read, but not write results. */
  readonly reader?: GrpcClient | undefined;
  /** A server of the same kind whose store is full. */
  readonly full?: GrpcClient | undefined;
  /** Where Bazel's HTTP cache is, such as http://127.0.0.1:8080. */
  readonly http?: string | undefined;
  /** A file server that the server under test may fetch from, and that answers 404 to unknown paths. */
  readonly files?: string | undefined;
  /** Sent with every action, such as the pool that is to run it. */
  readonly platform: readonly Property[];
  /** A property that gives an action no more than 64 MiB of memory. */
  readonly littleMemory?: Property | undefined;
  /** A caller with one running and three waiting actions. */
  readonly narrow?: GrpcClient | undefined;
  /** How long an action goes on without a waiting client. */
  readonly leaveGraceMs?: number | undefined;
  /** Kills the server with everything that runs in it, and starts it again. */
  readonly crash?: (() => Promise<void>) | undefined;
  /** Makes the server evict every blob that it may. */
  readonly forget?: (() => Promise<void>) | undefined;
  /** A caller that may run tasks by Millrace's own work protocol. */
  readonly executor?: GrpcClient | undefined;
  readonly instance: string;
  readonly capabilities: ServerCapabilities;
  /** Sent with calls that do not go through `client`. */
  readonly headers: readonly (readonly [string, string])[];
};

export const { findMissingBlobs, batchUpdateBlobs, batchReadBlobs, getTree, splitBlob, spliceBlob } =
  ContentAddressableStorage.methods;
export const { getActionResult, updateActionResult } = ActionCache.methods;
export const { read, write, queryWriteStatus } = ByteStream.methods;

export const functionNumbers: Readonly<Record<DigestFunction, number>> = {
  sha256: DigestFunction_Value.SHA256,
  blake3: DigestFunction_Value.BLAKE3,
  sha1: DigestFunction_Value.SHA1,
  sha384: DigestFunction_Value.SHA384,
  sha512: DigestFunction_Value.SHA512,
};

export const code = {
  cancelled: 1,
  invalid: 3,
  deadline: 4,
  notFound: 5,
  exists: 6,
  denied: 7,
  exhausted: 8,
  precondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
} as const;

/** Bytes that no server has seen. */
export const fresh = (length = 100): Buffer => randomBytes(length);

/** Bytes that no server has seen and that compress well. */
export const freshText = (length: number): Buffer =>
  Buffer.concat([randomBytes(16), Buffer.alloc(length - 16, "all work and no play ")]);

export const digestOf = (bytes: Uint8Array, fn: DigestFunction = "sha256"): Digest => ({
  hash: hashHex(fn, bytes),
  sizeBytes: bytes.length,
});

export const nothing: Digest = digestOf(new Uint8Array());
export const zstd = (bytes: Uint8Array): Buffer => zstdCompressSync(bytes);
export const unzstd = (bytes: Uint8Array): Buffer => zstdDecompressSync(bytes);

export const hasFunction = ({ capabilities }: Lab, fn: DigestFunction): boolean =>
  capabilities.cacheCapabilities?.digestFunctions.includes(functionNumbers[fn]) ?? false;
export const hasZstd = ({ capabilities }: Lab): boolean =>
  capabilities.cacheCapabilities?.supportedCompressors.includes(Compressor_Value.ZSTD) ?? false;

type Naming = { readonly compressed?: boolean; readonly fn?: string; readonly instance?: string };

const prefixOf = (lab: Lab, instance?: string): string => {
  const name = instance ?? lab.instance;
  return name === "" ? "" : `${name}/`;
};
const pathOf = ({ hash, sizeBytes }: Digest, { compressed, fn }: Naming): string =>
  `${compressed ? "compressed-blobs/zstd" : "blobs"}/${fn === undefined ? "" : `${fn}/`}${hash}/${sizeBytes}`;

export const readName = (lab: Lab, digest: Digest, naming: Naming = {}): string =>
  `${prefixOf(lab, naming.instance)}${pathOf(digest, naming)}`;
export const writeName = (lab: Lab, digest: Digest, naming: Naming & { readonly uuid?: string } = {}): string =>
  `${prefixOf(lab, naming.instance)}uploads/${naming.uuid ?? randomUUID()}/${pathOf(digest, naming)}`;

/** How a call ended: 0 for success. */
export async function codeOf(call: Promise<unknown>): Promise<number> {
  try {
    await call;
    return 0;
  } catch (error) {
    if (isGrpcError(error)) return error.code;
    throw error;
  }
}

/** The call must end with one of these codes. */
export async function ends(call: Promise<unknown>, allowed: number | readonly number[], what: string): Promise<void> {
  const got = await codeOf(call);
  const wanted = typeof allowed === "number" ? [allowed] : allowed;
  ok(wanted.includes(got), `${what}: ended with ${got}, should be ${wanted.join(" or ")}`);
}

export async function missing(lab: Lab, digests: readonly Digest[], digestFunction = 0): Promise<readonly Digest[]> {
  const request = { instanceName: lab.instance, blobDigests: digests, digestFunction };
  return (await lab.client.unary(findMissingBlobs, request)).missingBlobDigests;
}

export async function isThere(lab: Lab, digest: Digest, digestFunction = 0): Promise<boolean> {
  return (await missing(lab, [digest], digestFunction)).length === 0;
}

type Reading = { readonly offset?: number; readonly limit?: number; readonly options?: CallOptions };

export async function readAll(
  { client }: Lab,
  resourceName: string,
  { offset: readOffset = 0, limit: readLimit = 0, options }: Reading = {},
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const { data } of client.serverStream(read, { resourceName, readOffset, readLimit }, options))
    parts.push(data);
  return Buffer.concat(parts);
}

/** A Write in pieces, each with its fields; fields that are left out continue from the last piece. */
export type Piece = Partial<WriteRequest> & { readonly data: Uint8Array };

export async function* pieces(resourceName: string, given: readonly Piece[]): AsyncGenerator<WriteRequest> {
  let offset = 0;
  for (const [i, piece] of given.entries()) {
    const request = { resourceName: i === 0 ? resourceName : "", writeOffset: offset, finishWrite: false, ...piece };
    offset = request.writeOffset + request.data.length;
    yield request;
  }
}

export async function writePieces(
  { client }: Lab,
  resourceName: string,
  given: readonly Piece[],
  options?: CallOptions,
): Promise<number> {
  const { committedSize } = await client.clientStream(write, pieces(resourceName, given), options);
  return committedSize;
}

/** All in one message. */
export const writeWhole = (lab: Lab, resourceName: string, data: Uint8Array, options?: CallOptions): Promise<number> =>
  writePieces(lab, resourceName, [{ data, finishWrite: true }], options);

export async function upload(lab: Lab, bytes: Uint8Array): Promise<Digest> {
  const digest = digestOf(bytes);
  await writeWhole(lab, writeName(lab, digest), bytes);
  return digest;
}

export async function status(lab: Lab, resourceName: string) {
  return await lab.client.unary(queryWriteStatus, { resourceName });
}

/** A Write whose client sends what the test says and keeps the stream open until it is told to end it. */
export function openWrite({ client }: Lab, options?: CallOptions) {
  const queue: (WriteRequest | undefined)[] = [];
  let wake: (() => void) | undefined;
  const push = (item: WriteRequest | undefined): void => {
    queue.push(item);
    wake?.();
  };
  async function* requests(): AsyncGenerator<WriteRequest> {
    for (;;) {
      while (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const item = queue.shift();
      if (!item) return;
      yield item;
    }
  }
  const answer = client.clientStream(write, requests(), options);
  answer.catch(() => {}); // handled where it is awaited
  return { answer, send: (request: WriteRequest) => push(request), end: () => push(undefined) };
}

/** Waits until the server reports the state, rather than for a time. */
export async function until(what: string, isSo: () => Promise<boolean>, limitMs = 60_000): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (!(await isSo())) {
    ok(Date.now() < deadline, `waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export const emptyResult: ActionResult = {
  outputFiles: [],
  outputDirectories: [],
  exitCode: 0,
  stdoutRaw: new Uint8Array(),
  stderrRaw: new Uint8Array(),
  outputFileSymlinks: [],
  outputDirectorySymlinks: [],
  outputSymlinks: [],
};

export const outputFile = (path: string, digest: Digest) => ({
  path,
  digest,
  isExecutable: false,
  contents: new Uint8Array(),
});

type Updating = { readonly instance?: string; readonly digestFunction?: number; readonly client?: GrpcClient };

export async function update(lab: Lab, actionDigest: Digest, result: Partial<ActionResult>, more: Updating = {}) {
  return await (more.client ?? lab.client).unary(updateActionResult, {
    instanceName: more.instance ?? lab.instance,
    actionDigest,
    actionResult: { ...emptyResult, ...result },
    digestFunction: more.digestFunction ?? 0,
  });
}

type Getting = Updating & { readonly stdout?: boolean; readonly stderr?: boolean; readonly files?: readonly string[] };

export async function result(lab: Lab, actionDigest: Digest, more: Getting = {}): Promise<ActionResult> {
  return await (more.client ?? lab.client).unary(getActionResult, {
    instanceName: more.instance ?? lab.instance,
    actionDigest,
    inlineStdout: more.stdout ?? false,
    inlineStderr: more.stderr ?? false,
    inlineOutputFiles: more.files ?? [],
    digestFunction: more.digestFunction ?? 0,
  });
}

/** The digest of a new action. */
export const freshAction = (): Digest => digestOf(fresh());

export function sameBytes(got: Uint8Array, wanted: Uint8Array, what: string): void {
  equal(got.length, wanted.length, `${what}: how many bytes`);
  ok(Buffer.compare(got, wanted) === 0, `${what}: other bytes`);
}
