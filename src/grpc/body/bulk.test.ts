// Messages longer than a window, and messages that their handler has laid out itself.
import { deepEqual, equal, ok } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connectH2 } from "#h2/client.ts";
import { h2LimitsDefault } from "#h2/connection/limits.ts";
import { listenH2, type H2Server } from "#h2/server.ts";
import { realClock } from "#testing/real-clock.ts";
import { ByteStream, type ReadRequest, type WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";
import type { Message } from "#wire/message.ts";
import { readResponseHeadBytesMax, writeReadResponseHead } from "#wire/read-response.ts";
import { writeRequest } from "#wire/write-request.ts";
import { GrpcClient } from "#grpc/client.ts";
import { laidHeadBytes, LaidMessage, OnlyMessage } from "#grpc/outgoing.ts";
import { GrpcServer } from "#grpc/server.ts";

const { read, write } = ByteStream.methods;
const headBytes = laidHeadBytes + readResponseHeadBytesMax;
const limited = { timeout: 90_000 };

const sizes = [0, 1, 100, 3_000, 16_384, 100_000, h2LimitsDefault.streamWindowBytes + 1, 3 * 1024 * 1024];

function patterned(length: number, from = 0): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i += 1) bytes[i] = ((i + from) * 7 + ((i + from) >> 8)) & 0xff;
  return bytes;
}

describe("bulk", () => {
  let server: H2Server;
  let client: GrpcClient;
  let released = 0;

  async function* chunks({ resourceName }: ReadRequest) {
    for (const size of sizes) {
      const data = patterned(size);
      if (resourceName !== "laid") {
        yield { data };
        continue;
      }
      const chunk = Buffer.allocUnsafeSlow(headBytes + size);
      data.copy(chunk, headBytes);
      const start = writeReadResponseHead(chunk, headBytes, size);
      yield new LaidMessage(chunk.subarray(start), () => (released += 1));
    }
  }

  before(async () => {
    const grpc = new GrpcServer<undefined>({ clock: realClock, admit: () => undefined }).add(ByteStream, {
      read: chunks,
      async write(requests: AsyncIterable<WriteRequest>) {
        let committedSize = 0;
        for await (const { data } of requests) {
          ok(patterned(data.length).equals(data));
          committedSize += data.length;
        }
        return { committedSize };
      },
    });
    grpc.addMethod({ ...read, path: "/only" }, (request) => {
      return new OnlyMessage({ data: patterned((request as ReadRequest).readLimit) });
    });
    const inParts = { ...write, path: "/parts", request: writeRequest as Message<unknown> };
    grpc.addMethod(inParts, async (requests) => {
      let committedSize = 0;
      let parts = 0;
      for await (const { writeOffset, data } of requests as AsyncIterable<WriteRequest>) {
        const before = Buffer.from(data);
        ok(patterned(data.length, writeOffset).equals(data));
        if (parts % 7 === 0) await new Promise((later) => setImmediate(later)); // more arrives in the meantime
        ok(before.equals(data));
        committedSize += data.length;
        parts += 1;
      }
      ok(parts > sizes.length);
      return { committedSize };
    });
    server = await listenH2({
      host: "127.0.0.1",
      port: 0,
      clock: realClock,
      onRequest: (stream, headers, ended) => grpc.open(stream, headers, ended),
    });
    const connect = () => connectH2({ host: "127.0.0.1", port: server.port, clock: realClock });
    client = new GrpcClient({ clock: realClock, connect, authority: "test" });
  });

  after(async () => {
    client.close();
    await server.close();
  });

  for (const how of ["generated", "laid"])
    test(`${how} messages are read whole, whatever the window`, limited, async () => {
      const got: number[] = [];
      for await (const { data } of client.serverStream(read, { resourceName: how, readOffset: 0, readLimit: 0 })) {
        ok(patterned(data.length).equals(data));
        got.push(data.length);
      }
      deepEqual(got, sizes);
    });

  test("a single message is sent like a stream of one", limited, async () => {
    for (const size of [0, 10, 100_000]) {
      const got: Buffer[] = [];
      const method = { ...read, path: "/only" };
      const request = { resourceName: "", readOffset: 0, readLimit: size };
      for await (const { data } of client.serverStream(method, request)) got.push(Buffer.from(data));
      equal(got.length, 1);
      ok(patterned(size).equals(got[0] ?? Buffer.alloc(0)));
    }
  });

  test("lent memory is returned", () => equal(released, sizes.length));

  for (const path of [write.path, "/parts"])
    test(`messages are written whole, whatever the window: ${path}`, limited, async () => {
      async function* requests() {
        for (const size of sizes) yield { resourceName: "", writeOffset: 0, finishWrite: false, data: patterned(size) };
      }
      const { committedSize } = await client.clientStream({ ...write, path }, requests());
      equal(
        committedSize,
        sizes.reduce((sum, size) => sum + size, 0),
      );
    });
});
