/**
 * Many concurrent streams, each of which makes one call after the other: small ones, reads and writes of mixed sizes.
 */
import { createHash } from "node:crypto";
import { Random } from "#base/random.ts";
import { frame } from "#grpc/outgoing.ts";
import { connectH2 } from "#h2/client.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { H2Socket } from "#h2/socket.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";
import { systemClock as realClock } from "#door/system-clock.ts";
import { ByteStream, ReadRequest, WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";
import { headersOf } from "#bench/h2/load.ts";
import { percentile } from "#bench/measure.ts";
import { fileResource } from "#bench/peers/blobs.ts";

export type StreamsAsked = {
  readonly port: number;
  readonly connections: number;
  /** On each of them. */
  readonly streams: number;
  readonly forMs: number;
};

export type StreamsDid = {
  readonly calls: number;
  readonly failed: number;
  readonly firstFailure: string;
  readonly seconds: number;
  readonly mib: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly openMost: number;
};

/** A call that is repeated: its messages, and the least size of its answer. */
type Call = { readonly path: string; readonly messages: readonly Buffer[]; readonly answerBytes: number };

const kib = 1024;
const sizes = [1, 4, 16, 64, 256].map((size) => size * kib);
const largest = 2 * kib * kib;
const messageBytes = 64 * kib;

function writing(size: number): Call {
  const content = Buffer.alloc(size, size / kib);
  const resourceName = createHash("sha256").update(content).digest("hex");
  const messages: Buffer[] = [];
  for (let at = 0; at < size; at += messageBytes) {
    const data = content.subarray(at, at + messageBytes);
    messages.push(frame(WriteRequest, { resourceName, writeOffset: at, finishWrite: at + data.length === size, data }));
  }
  return { path: ByteStream.methods.write.path, messages, answerBytes: 6 };
}

const reading = (size: number): Call => ({
  path: ByteStream.methods.read.path,
  messages: [frame(ReadRequest, { resourceName: fileResource, readOffset: 0, readLimit: size })],
  answerBytes: size,
});

/** One call on one stream, to its end. */
class OneCall implements StreamHandler {
  readonly #call: Call;
  readonly #done = Promise.withResolvers<void>();
  #got = 0;
  #sent = 0;

  constructor(call: Call) {
    this.#call = call;
  }

  run(socket: H2Socket): Promise<void> {
    this.onWritable(socket.request(headersOf(this.#call.path), this));
    return this.#done.promise;
  }

  onWritable(stream: Stream): void {
    const { messages } = this.#call;
    while (this.#sent < messages.length) {
      const message = messages[this.#sent] as Buffer;
      this.#sent += 1;
      if (!stream.write(message, { end: this.#sent === messages.length })) return;
    }
  }

  onHeaders(_stream: Stream, headers: HeaderList, ended: boolean): void {
    if (ended) this.#ended(headers);
  }

  onData(stream: Stream, bytes: Buffer): void {
    this.#got += bytes.length;
    stream.consume(bytes.length);
  }

  onTrailers(_stream: Stream, trailers: HeaderList): void {
    this.#ended(trailers);
  }

  onReset(_stream: Stream, code: number): void {
    this.#done.reject(new Error(`${this.#call.path} was reset with ${code}`));
  }

  #ended(trailers: HeaderList): void {
    const status = trailers.get("grpc-status");
    if (status === "0" && this.#got >= this.#call.answerBytes) return this.#done.resolve();
    const why = `status ${status} ${trailers.get("grpc-message") ?? ""}, ${this.#got} bytes`;
    this.#done.reject(new Error(`${this.#call.path}: ${why} instead of ${this.#call.answerBytes}`));
  }
}

export async function runStreams(asked: StreamsAsked, find: Omit<Call, "answerBytes">): Promise<StreamsDid> {
  const { port, connections, streams, forMs } = asked;
  const small: Call = { ...find, answerBytes: 200 };
  const mixed = sizes.flatMap((size) => [reading(size), writing(size)]);
  const large = [reading(largest), writing(largest)];
  const random = new Random("streams");
  const next = (): Call => {
    const dice = random.below(1_000);
    if (dice < 600) return small;
    return dice < 998 ? (mixed[dice % mixed.length] as Call) : (large[dice % 2] as Call);
  };
  const sockets = await Promise.all(
    Array.from({ length: connections }, () => connectH2({ host: "127.0.0.1", port, clock: realClock })),
  );
  const startedMono = performance.now();
  const tookMs: number[] = [];
  let [calls, failed, bytes, open, openMost, firstFailure] = [0, 0, 0, 0, 0, ""];
  const slot = async (socket: H2Socket): Promise<void> => {
    while (performance.now() - startedMono < forMs && failed < 1_000) {
      const call = next();
      const askedMono = performance.now();
      open += 1;
      openMost = Math.max(openMost, open);
      try {
        await new OneCall(call).run(socket);
        calls += 1;
        bytes += call.answerBytes + call.messages.reduce((sum, message) => sum + message.length, 0);
        if (calls % 16 === 0) tookMs.push(performance.now() - askedMono);
      } catch (error) {
        failed += 1;
        firstFailure ||= String(error);
      }
      open -= 1;
    }
  };
  await Promise.all(sockets.flatMap((socket) => Array.from({ length: streams }, () => slot(socket))));
  const seconds = (performance.now() - startedMono) / 1_000;
  for (const socket of sockets) socket.close();
  const [p50Ms, p99Ms] = [percentile(tookMs, 0.5), percentile(tookMs, 0.99)];
  return { calls, failed, firstFailure, seconds, mib: bytes / 2 ** 20, p50Ms, p99Ms, openMost };
}
