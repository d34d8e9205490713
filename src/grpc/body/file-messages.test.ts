// A file's bytes are sent as messages, in bounded memory, and the file is not used after the end.
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { mkdtemp, open, rm, writeFile, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { connectH2 } from "#h2/client.ts";
import { listenH2, type H2Server } from "#h2/server.ts";
import { realClock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { ByteStream, ReadResponse } from "#wire/generated/google/bytestream/bytestream.ts";
import { decode } from "#wire/message.ts";
import { readResponseHead as head } from "#wire/read-response.ts";
import { GrpcClient } from "#grpc/client.ts";
import { fileMessages } from "./file-messages.ts";
import { prefixBytes } from "./message-reader.ts";
import { LentMessage, type LaidMessage } from "#grpc/outgoing.ts";
import { GrpcServer } from "#grpc/server.ts";

const fileBytes = 1_000_000;
const limited = { timeout: 90_000 };

/** Reads less than requested, as a disk may. */
const hesitant = (file: FileHandle, most: number): Pick<FileHandle, "readv"> => ({
  readv(into, position) {
    let left = most;
    const some = into.flatMap((piece) => {
      const part = new Uint8Array(piece.buffer, piece.byteOffset, Math.min(left, piece.byteLength));
      left -= part.length;
      return part.length > 0 ? [part] : [];
    });
    return file.readv(some, position) as never;
  },
});

describe("a file as messages", () => {
  let folder: string;
  let file: FileHandle;
  let content: Buffer;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-file-"));
    content = Buffer.from(Array.from({ length: fileBytes }, (_, i) => (i * 7 + (i >> 8)) & 0xff));
    await writeFile(join(folder, "blob"), content);
    file = await open(join(folder, "blob"));
  });
  after(async () => {
    await file.close();
    await rm(folder, { recursive: true });
  });

  const wholeOf = (message: LaidMessage): Buffer => message.whole().subarray(prefixBytes);
  const dataOf = (message: LaidMessage): Uint8Array => decode(ReadResponse, wholeOf(message)).data;

  test("sends the requested range, whatever the sizes, within its memory limit", limited, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: fileBytes }),
        fc.nat({ max: fileBytes }),
        fc.integer({ min: 1_000, max: 300_000 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 5_000, max: 300_000 }),
        async (offset, wanted, chunkBytes, chunksMax, most) => {
          const length = Math.min(wanted, fileBytes - offset);
          const got: Uint8Array[] = [];
          const held: LaidMessage[] = [];
          const range = { file: hesitant(file, most), offset, length, head, chunkBytes, chunksMax };
          for await (const message of fileMessages(range)) {
            got.push(dataOf(message));
            ok(wholeOf(message).length < chunkBytes + 16_384);
            held.push(message);
            ok(held.length <= chunksMax);
            if (held.length === chunksMax) for (const one of held.splice(0)) one.release?.();
          }
          ok(Buffer.concat(got).equals(content.subarray(offset, offset + length)));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("goes to the file's end without a length; a length beyond the end is corrupt", async () => {
    const all: Uint8Array[] = [];
    for await (const message of fileMessages({ file, head })) {
      all.push(dataOf(message));
      message.release?.();
    }
    ok(Buffer.concat(all).equals(content));
    const beyond = fileMessages({ file, head, offset: fileBytes - 10, length: 11 });
    await rejects(beyond.next(), (error) => isFault(error, "corrupt"));
  });

  test("does not use the file any more when the iteration was stopped early (F1)", async () => {
    let reading = 0;
    const gate = Promise.withResolvers<void>();
    const slow = {
      async readv(into: Buffer[], position: number) {
        reading += 1;
        if (position > 0) await gate.promise;
        const did = await file.readv(into, position);
        reading -= 1;
        return did;
      },
    } as never;
    const messages = fileMessages({ file: slow, head, chunkBytes: 1_000 });
    await messages.next();
    let ended = false;
    const end = messages.return().then(() => (ended = true));
    await until("the next piece is being read", () => reading === 1);
    equal(ended, false);
    gate.resolve();
    await end;
    equal(reading, 0);
  });

  test("ends although its memory is never returned", async () => {
    const messages = fileMessages({ file, head, chunkBytes: 1_000, chunksMax: 1 });
    await messages.next();
    await messages.return();
  });

  describe("in a call", () => {
    let server: H2Server;
    let client: GrpcClient;
    let ended = 0;

    /** As a store does: one buffer, reused for every part. */
    async function* lent() {
      const memory = Buffer.alloc(100_000);
      for (let position = 0; ;) {
        const { bytesRead } = await file.read(memory, 0, memory.length, position);
        if (bytesRead === 0) return;
        position += bytesRead;
        yield new LentMessage(head.of(bytesRead), memory.subarray(0, bytesRead));
        memory.fill(0xee);
      }
    }

    before(async () => {
      const grpc = new GrpcServer<undefined>({ clock: realClock, admit: () => undefined }).add(ByteStream, {
        async *read({ resourceName }) {
          try {
            if (resourceName === "lent") return yield* lent();
            for (let i = 0; i < (resourceName === "long" ? 1_000 : 1); i += 1) yield* fileMessages({ file, head });
          } finally {
            ended += 1;
          }
        },
      });
      server = await listenH2({
        host: "127.0.0.1",
        port: 0,
        clock: realClock,
        onRequest: (stream, headers, hasEnded) => grpc.open(stream, headers, hasEnded),
      });
      const connect = () => connectH2({ host: "127.0.0.1", port: server.port, clock: realClock });
      client = new GrpcClient({ clock: realClock, connect, authority: "test" });
    });
    after(async () => {
      client.close();
      await server.close();
    });

    const read = (resourceName: string) =>
      client.serverStream(ByteStream.methods.read, { resourceName, readOffset: 0, readLimit: 0 });

    for (const name of ["file", "lent"])
      test(`arrives unchanged: ${name}`, limited, async () => {
        const got: Buffer[] = [];
        for await (const { data } of read(name)) got.push(Buffer.from(data));
        ok(Buffer.concat(got).equals(content));
      });

    test("ends when its caller disconnects", limited, async () => {
      await until("the others have ended", () => ended === 2);
      const sizes: number[] = [];
      for await (const { data } of read("long")) {
        sizes.push(data.length);
        if (sizes.length === 3) break;
      }
      await until("the handler has ended", () => ended === 3);
      deepEqual(
        sizes.map((size) => size > 0),
        [true, true, true],
      );
    });
  });
});
