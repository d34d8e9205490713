/** The server of bench/h2/h2.ts, in a process of its own so that its CPU can be told from its clients'. */
import { createHash } from "node:crypto";
import { ConstantHeaders } from "#h2/hpack/hpack-encoder.ts";
import { listenH2 } from "#h2/server.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";
import { systemClock as realClock } from "#door/system-clock.ts";

const headers = new ConstantHeaders([
  [":status", "200"],
  ["content-type", "application/grpc"],
]);
const trailers = new ConstantHeaders([["grpc-status", "0"]]);
const reply = Buffer.alloc(213, 7);
const bulkChunk = Buffer.alloc(1024 * 1024, 7);

const unary: StreamHandler = {
  onData(stream, _bytes, ended) {
    if (ended) stream.sendUnary(headers, reply, trailers);
  },
  onReset() {},
};

/** Receives and hashes everything, as a blob store would. */
class Upload implements StreamHandler {
  readonly #hash = createHash("sha256");

  onData(stream: Stream, bytes: Buffer, ended: boolean): void {
    this.#hash.update(bytes);
    stream.consume(bytes.length);
    if (ended) stream.sendUnary(headers, this.#hash.digest(), trailers);
  }

  onReset(): void {}
}

/** Sends this many MiB from memory, as fast as the client reads. */
class Bulk implements StreamHandler {
  #left: number;

  constructor(mib: number) {
    this.#left = mib;
  }

  onData(): void {}
  onReset(): void {}

  onWritable(stream: Stream): void {
    while (this.#left > 0) {
      this.#left -= 1;
      if (!stream.write(bulkChunk)) return;
    }
    if (this.#left === 0) stream.sendTrailers(trailers);
    this.#left = -1;
  }
}

const server = await listenH2({
  host: "127.0.0.1",
  port: 0,
  clock: realClock,
  connectionsMax: 20_000,
  onRequest(stream, { path }) {
    if (path === "/upload") return new Upload();
    const mib = /^\/bulk\/(\d+)$/.exec(path ?? "")?.[1];
    if (mib === undefined) return unary;
    const bulk = new Bulk(Number(mib));
    stream.handler = bulk;
    stream.sendHeaders(headers);
    bulk.onWritable(stream);
    return bulk;
  },
});

/** Reports the CPU used so far on request. */
process.on("message", () => process.send?.({ cpu: process.cpuUsage(), rss: process.memoryUsage().rss }));
process.on("disconnect", () => process.exit(0));
process.send?.({ port: server.port });
