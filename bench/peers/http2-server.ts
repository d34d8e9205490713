/** node:http2 without a library: its stream API, with messages framed and written by hand. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { MessageReader, prefixBytes, writePrefix, type Framed } from "#grpc/body/message-reader.ts";
import { frame } from "#grpc/outgoing.ts";
import { ReadRequest, WriteRequest, WriteResponse } from "#wire/generated/google/bytestream/bytestream.ts";
import {
  FindMissingBlobsRequest,
  FindMissingBlobsResponse,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import { writeReadResponseHead } from "#wire/read-response.ts";
import { chunkBytesOf, chunkHeadBytes, fileChunks, fileResource, Written } from "./blobs.ts";

const headers = { ":status": 200, "content-type": "application/grpc" } as const;
const messageBytesMax = 8 << 20;

function respond(stream: ServerHttp2Stream, status = "0"): void {
  stream.respond(headers, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
}

function onMessages(stream: ServerHttp2Stream, take: (message: Framed) => void, ended: () => void): void {
  const reader = new MessageReader(messageBytesMax);
  stream.on("data", (chunk: Buffer) => reader.read(chunk, { take }));
  stream.on("end", ended);
}

function find(stream: ServerHttp2Stream): void {
  onMessages(
    stream,
    ({ bytes }) => {
      const { blobDigests } = decode(FindMissingBlobsRequest, bytes);
      respond(stream);
      stream.end(frame(FindMissingBlobsResponse, { missingBlobDigests: blobDigests }));
    },
    () => {},
  );
}

async function readFile(stream: ServerHttp2Stream, bytes: number): Promise<void> {
  respond(stream);
  for await (const data of fileChunks(bytes)) {
    const head = Buffer.alloc(chunkHeadBytes);
    const start = writeReadResponseHead(head, chunkHeadBytes, data.length) - prefixBytes;
    writePrefix(head, start, chunkHeadBytes - start - prefixBytes + data.length, false);
    stream.write(head.subarray(start));
    if (!stream.write(data)) await once(stream, "drain");
  }
  stream.end();
}

function read(stream: ServerHttp2Stream): void {
  onMessages(
    stream,
    ({ bytes }) => {
      const { resourceName, readLimit } = decode(ReadRequest, bytes);
      if (resourceName === fileResource) return void readFile(stream, readLimit);
      const chunkBytes = chunkBytesOf(resourceName);
      const chunk = Buffer.alloc(chunkHeadBytes + chunkBytes, 7);
      const start = writeReadResponseHead(chunk, chunkHeadBytes, chunkBytes) - prefixBytes;
      writePrefix(chunk, start, chunk.length - start - prefixBytes, false);
      let left = readLimit;
      const more = (): void => {
        for (; left > 0; left -= chunkBytes) {
          if (stream.write(chunk.subarray(start))) continue;
          left -= chunkBytes;
          return void stream.once("drain", more);
        }
        stream.end();
      };
      respond(stream);
      more();
    },
    () => {},
  );
}

function write(stream: ServerHttp2Stream): void {
  const written = new Written();
  onMessages(
    stream,
    ({ bytes }) => {
      const { resourceName, data } = decode(WriteRequest, bytes);
      written.add(resourceName, data);
    },
    () => {
      written.check();
      respond(stream);
      stream.end(frame(WriteResponse, { committedSize: written.bytes }));
    },
  );
}

const windowBytes = 16 << 20;

export async function serveHttp2(): Promise<number> {
  const server = createServer({ settings: { initialWindowSize: windowBytes } });
  server.on("session", (session) => session.setLocalWindowSize(windowBytes));
  server.on("stream", (stream: ServerHttp2Stream, given: IncomingHttpHeaders) => {
    stream.on("error", () => {});
    if (given[":path"] === "/google.bytestream.ByteStream/Read") read(stream);
    else if (given[":path"] === "/google.bytestream.ByteStream/Write") write(stream);
    else find(stream);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return (server.address() as AddressInfo).port;
}
