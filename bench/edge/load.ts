/**
 * The load of `bench edge`, in a process of its own: small calls by bench/h2/load.ts, bulk by the client of src/h2.
 * Does what it is told over the process's channel, one thing at a time.
 */
import { createHash } from "node:crypto";
import { MessageReader } from "#grpc/body/message-reader.ts";
import { frame } from "#grpc/outgoing.ts";
import { connectH2 } from "#h2/client.ts";
import { PulledStream } from "#h2/connection/pulled-stream.ts";
import type { H2Socket } from "#h2/socket.ts";
import { systemClock as realClock } from "#door/system-clock.ts";
import { ByteStream, ReadRequest, WriteRequest, WriteResponse } from "#wire/generated/google/bytestream/bytestream.ts";
import {
  ContentAddressableStorage,
  FindMissingBlobsRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import { chunkSizes, type ChunkSize } from "#bench/peers/blobs.ts";
import { runStreams, type StreamsAsked, type StreamsDid } from "./streams-load.ts";
import { headersOf, prepareLoad, type Load } from "#bench/h2/load.ts";
import { answering } from "#bench/load-process.ts";
import { percentile } from "#bench/measure.ts";

export type Asked =
  | ({ readonly kind: "unary" } & Omit<Load, "body">)
  | {
      readonly kind: "read" | "write";
      readonly port: number;
      readonly mib: number;
      readonly chunk: ChunkSize | "file";
      readonly tls?: boolean;
    }
  | { readonly kind: "connect"; readonly port: number; readonly connections: number }
  | { readonly kind: "hang-up" }
  | ({ readonly kind: "streams" } & StreamsAsked);

/** `count` is calls or MiB. */
export type Did = {
  readonly count: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The size of every call's answer. */
  readonly bytesEach: number;
};

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
const findBody = frame(FindMissingBlobsRequest, {
  instanceName: "",
  blobDigests: [1, 2, 3].map((i) => ({ hash: hash(`blob ${i}`), sizeBytes: i * 1_000 })),
  digestFunction: 0,
});

async function unary(load: Omit<Load, "body">): Promise<Did> {
  const run = await prepareLoad({ ...load, body: findBody });
  const { calls, seconds, tookMs, dataBytes } = await run();
  const took = Array.from(tookMs);
  const [p50Ms, p99Ms] = [percentile(took, 0.5), percentile(took, 0.99)];
  return { count: calls, seconds, p50Ms, p99Ms, bytesEach: dataBytes / calls };
}

const open = (port: number, tls = false): Promise<H2Socket> =>
  connectH2({ host: "127.0.0.1", port, clock: realClock, ...(tls && { tls: { rejectUnauthorized: false } }) });

const whole = (mib: number, seconds: number, bytes: number): Did => ({
  count: mib,
  seconds,
  p50Ms: Number.NaN,
  p99Ms: Number.NaN,
  bytesEach: bytes / mib,
});

type Bulk = Extract<Asked, { readonly kind: "read" | "write" }>;

async function read({ port, mib, chunk: resourceName, tls }: Bulk): Promise<Did> {
  const socket = await open(port, tls);
  const startedMono = performance.now();
  const done = Promise.withResolvers<void>();
  let bytes = 0;
  const stream = socket.request(headersOf(ByteStream.methods.read.path), {
    onHeaders: (_stream, _headers, ended) => ended && done.reject(new Error("refused")),
    onData(from, some, ended) {
      bytes += some.length;
      from.consume(some.length);
      if (ended) done.resolve();
    },
    onTrailers: () => done.resolve(),
    onReset: (_stream, code) => done.reject(new Error(`reset with ${code}`)),
  });
  const request = { resourceName, readOffset: 0, readLimit: mib * chunkSizes["1M"] };
  stream.write(frame(ReadRequest, request), { end: true });
  await done.promise;
  const seconds = (performance.now() - startedMono) / 1_000;
  socket.close();
  if (bytes < mib * chunkSizes["1M"]) throw new Error(`${bytes} bytes came instead of ${mib} MiB`);
  return whole(mib, seconds, bytes);
}

const resourceNames = new Map<number, string>();

function resourceName(mib: number): string {
  let name = resourceNames.get(mib);
  if (name === undefined) {
    const all = createHash("sha256");
    for (let i = 0; i < mib; i += 1) all.update(Buffer.alloc(chunkSizes["1M"], 7));
    resourceNames.set(mib, (name = all.digest("hex")));
  }
  return name;
}

async function write({ port, mib, chunk, tls }: Bulk): Promise<Did> {
  const socket = await open(port, tls);
  const data = Buffer.alloc(chunk === "file" ? 0 : chunkSizes[chunk], 7);
  const message = frame(WriteRequest, { resourceName: resourceName(mib), writeOffset: 0, finishWrite: false, data });
  const chunks = (mib * chunkSizes["1M"]) / data.length;
  const startedMono = performance.now();
  const stream = new PulledStream(
    socket.request(headersOf(ByteStream.methods.write.path), { onData() {}, onReset() {} }),
  );
  for (let sent = 1; sent <= chunks; sent += 1) await stream.write(message, { end: sent === chunks });
  const reader = new MessageReader(1 << 16);
  let committed = 0;
  for await (const some of stream)
    reader.read(some, { take: ({ bytes }) => (committed = decode(WriteResponse, bytes).committedSize) });
  const seconds = (performance.now() - startedMono) / 1_000;
  socket.close();
  if (committed !== mib * chunkSizes["1M"]) throw new Error(`${committed} bytes were taken instead of ${mib} MiB`);
  return whole(mib, seconds, committed);
}

let held: readonly H2Socket[] = [];

/** This many connections, each of which has made a call. */
async function connectMany(port: number, connections: number): Promise<Did> {
  const startedMono = performance.now();
  const opened: H2Socket[] = [];
  for (let i = 0; i < connections; i += 1) {
    const socket = await open(port);
    const answered = Promise.withResolvers<void>();
    const handler = { onData() {}, onTrailers: () => answered.resolve(), onReset: () => answered.resolve() };
    const { path } = ContentAddressableStorage.methods.findMissingBlobs;
    socket.request(headersOf(path), handler).write(findBody, { end: true });
    await answered.promise;
    opened.push(socket);
  }
  held = opened;
  return whole(connections, (performance.now() - startedMono) / 1_000, 0);
}

function hangUp(): Did {
  for (const socket of held) socket.close();
  held = [];
  return whole(0, 0, 0);
}

async function perform(asked: Asked): Promise<Did | StreamsDid> {
  switch (asked.kind) {
    case "unary":
      return await unary(asked);
    case "read":
      return await read(asked);
    case "write":
      return await write(asked);
    case "connect":
      return await connectMany(asked.port, asked.connections);
    case "hang-up":
      return hangUp();
    case "streams":
      return await runStreams(asked, {
        path: ContentAddressableStorage.methods.findMissingBlobs.path,
        messages: [findBody],
      });
  }
}

answering(perform);
