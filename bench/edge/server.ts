/**
 * A server of `bench edge`, in a separate process so that its CPU can be distinguished from its clients'. Its only
 * argument says which one: one of ours, or a peer that runs on Node.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEdge } from "#edge/edge.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";
import { Tls } from "#edge/tls/tls-config.ts";
import { fileMessages } from "#grpc/body/file-messages.ts";
import { LaidMessage } from "#grpc/outgoing.ts";
import { GrpcServer } from "#grpc/server.ts";
import type { AnyHandler } from "#grpc/service.ts";
import { listenH2 } from "#h2/server.ts";
import { selfSigned } from "#h2/testing/peer.ts";
import { systemClock as realClock } from "#door/system-clock.ts";
import { ContentAddressableStorage } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream, type ReadRequest, type WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";
import { answerRaw, rawFindMissingRequest, rawFindMissingResponse } from "#wire/find-missing-raw.ts";
import type { RawFindMissing, RawLookup } from "#wire/find-missing-raw.ts";
import type { Method } from "#wire/message.ts";
import { readResponseHead, writeReadResponseHead } from "#wire/read-response.ts";
import { writeRequest } from "#wire/write-request.ts";
import {
  benchFile,
  chunkBytesOf,
  chunkHeadBytes,
  fileChunks,
  fileResource,
  poolOf,
  Written,
} from "#bench/peers/blobs.ts";
import { bearer } from "#bench/h2/load.ts";
import { serveGrpcJs } from "#bench/peers/grpc-js-server.ts";
import { serveHttp2 } from "#bench/peers/http2-server.ts";

const { findMissingBlobs } = ContentAddressableStorage.methods;
const { read, write } = ByteStream.methods;

const byHand = { ...findMissingBlobs, request: rawFindMissingRequest, response: rawFindMissingResponse };
/** Nothing is ever there: all that is asked for is missing. */
const lookup: RawLookup = { hexLength: 64, find: () => {}, checkEmpty: () => {} };
const findByHand = (request: RawFindMissing) => answerRaw(request, lookup);
type Find = { readonly blobDigests: readonly unknown[] };
const findGenerated = ({ blobDigests }: Find) => ({ missingBlobDigests: blobDigests });
const findLater = async ({ blobDigests }: Find) => ({ missingBlobDigests: blobDigests });

async function* readGenerated({ resourceName, readLimit }: ReadRequest) {
  if (resourceName === fileResource) {
    for await (const data of fileChunks(readLimit)) yield { data };
    return;
  }
  const chunkBytes = chunkBytesOf(resourceName);
  const data = Buffer.alloc(chunkBytes, 7);
  for (let left = readLimit; left > 0; left -= chunkBytes) yield { data };
}

/** The store reads into memory with space before the data, and the message is built around it. */
async function* readLaid({ resourceName, readLimit }: ReadRequest) {
  if (resourceName === fileResource)
    return yield* fileMessages({ file: await benchFile(), length: readLimit, head: readResponseHead });
  const chunkBytes = chunkBytesOf(resourceName);
  const pool = poolOf(chunkBytes);
  for (let left = readLimit; left > 0; left -= chunkBytes) {
    const chunk = pool.take();
    const start = writeReadResponseHead(chunk, chunkHeadBytes, chunkBytes);
    yield new LaidMessage(chunk.subarray(start), () => pool.giveBack(chunk));
  }
}

async function writeAll(requests: AsyncIterable<WriteRequest>) {
  const written = new Written();
  for await (const { resourceName, data } of requests) written.add(resourceName, data);
  written.check();
  return { committedSize: written.bytes };
}

type Served = readonly (readonly [Method<unknown, unknown>, AnyHandler<unknown>])[];

const generatedWith = (find: unknown): Served =>
  [
    [findMissingBlobs, find],
    [read, readGenerated],
    [write, writeAll],
  ] as unknown as Served;

const generated = generatedWith(findGenerated);
const later = generatedWith(findLater);
const hand = [
  [byHand, findByHand],
  [read, readLaid],
  [{ ...write, request: writeRequest }, writeAll],
] as unknown as Served;

/** The gRPC room alone, with all its limits, and a server that admits every caller. */
async function serveRoom(methods: Served): Promise<number> {
  const server = new GrpcServer<unknown>({ clock: realClock, admit: () => undefined });
  for (const [method, handler] of methods) server.addMethod(method, handler);
  const { port } = await listenH2({
    host: "127.0.0.1",
    port: 0,
    clock: realClock,
    onRequest: (stream, headers, ended) => server.open(stream, headers, ended),
  });
  return port;
}

/** Everything that a node's port does for a call: authentication by token, policy, and metrics. */
async function serveEdge(methods: Served, tls?: Tls): Promise<number> {
  const sha256 = createHash("sha256").update(bearer.slice("Bearer ".length)).digest("hex");
  const edge = await startEdge({
    clock: realClock,
    listen: [{ host: "127.0.0.1", port: 0 }],
    tls,
    identity: Identity.parse({ tokens: [{ name: "bench", tenant: "*", roles: ["operator"], sha256 }] }),
    services(server) {
      for (const [method, handler] of methods) server.addMethod(method, handler);
      return new Map(methods.map(([{ path }]) => [path, "service.describe"]));
    },
    notReady: () => [],
    log: new Log((line) => process.stderr.write(line), realClock),
  });
  return edge.ports[0] as number;
}

/** With a self-signed certificate; undefined if there is no openssl. */
async function serveTls(): Promise<number> {
  const made = selfSigned();
  if (!made) return 0;
  const folder = mkdtempSync(join(tmpdir(), "millrace-tls-"));
  const [certificate, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(certificate, made.cert);
  writeFileSync(key, made.key, { mode: 0o600 });
  try {
    return await serveEdge(hand, Tls.parse({ certificate, key, reload: "1d" }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const kinds = {
  async: () => serveRoom(later),
  generated: () => serveRoom(generated),
  hand: () => serveRoom(hand),
  "edge-async": () => serveEdge(later),
  "edge-generated": () => serveEdge(generated),
  "edge-hand": () => serveEdge(hand),
  "edge-tls": () => serveTls(),
  "grpc-js": () => serveGrpcJs(),
  http2: () => serveHttp2(),
} as const;

export type ServerKind = keyof typeof kinds;

process.on("disconnect", () => process.exit(0));
process.send?.({ port: await kinds[process.argv[2] as ServerKind]() });
