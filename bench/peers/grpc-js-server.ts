/** The usual gRPC server on Node, with protobufjs's code for the messages. */
import { once } from "node:events";
import {
  Server,
  ServerCredentials,
  status,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServiceDefinition,
} from "@grpc/grpc-js";
import { chunkBytesOf, fileChunks, fileResource, Written } from "./blobs.ts";
import { protobufJs } from "./protobuf.ts";

const protos = ["build/bazel/remote/execution/v2/remote_execution.proto", "google/bytestream/bytestream.proto"];

type Long = number | { toNumber(): number };
type FindMissing = { readonly blobDigests: readonly unknown[] };
type ReadRequest = { readonly resourceName: string; readonly readLimit: Long };
type WriteRequest = { readonly resourceName: string; readonly data: Uint8Array };

function serviceDefinition(): ServiceDefinition {
  const codec = protobufJs(protos);
  const method = (path: string, request: string, response: string, streams: { in?: boolean; out?: boolean }) => {
    const [asked, answered] = [codec.type(request), codec.type(response)];
    return {
      path,
      requestStream: streams.in ?? false,
      responseStream: streams.out ?? false,
      requestSerialize: (message: unknown) => asked.encode(message) as Buffer,
      requestDeserialize: (bytes: Buffer) => asked.decode(bytes),
      responseSerialize: (message: unknown) => answered.encode(message) as Buffer,
      responseDeserialize: (bytes: Buffer) => answered.decode(bytes),
    };
  };
  const cas = "build.bazel.remote.execution.v2";
  return {
    find: method(
      `/${cas}.ContentAddressableStorage/FindMissingBlobs`,
      `${cas}.FindMissingBlobsRequest`,
      `${cas}.FindMissingBlobsResponse`,
      {},
    ),
    read: method(
      "/google.bytestream.ByteStream/Read",
      "google.bytestream.ReadRequest",
      "google.bytestream.ReadResponse",
      { out: true },
    ),
    write: method(
      "/google.bytestream.ByteStream/Write",
      "google.bytestream.WriteRequest",
      "google.bytestream.WriteResponse",
      { in: true },
    ),
  };
}

const find: handleUnaryCall<FindMissing, unknown> = (call, answer) =>
  answer(null, { missingBlobDigests: call.request.blobDigests });

type Reading = Parameters<handleServerStreamingCall<ReadRequest, unknown>>[0];

async function readFile(call: Reading): Promise<void> {
  for await (const data of fileChunks(Number(call.request.readLimit)))
    if (!call.write({ data })) await once(call, "drain");
  call.end();
}

const read: handleServerStreamingCall<ReadRequest, unknown> = (call) => {
  if (call.request.resourceName === fileResource) return void readFile(call);
  const chunkBytes = chunkBytesOf(call.request.resourceName);
  const data = Buffer.alloc(chunkBytes, 7);
  let left = Number(call.request.readLimit);
  const more = (): void => {
    for (; left > 0; left -= chunkBytes) {
      if (call.write({ data })) continue;
      left -= chunkBytes;
      return void call.once("drain", more);
    }
    call.end();
  };
  more();
};

const write: handleClientStreamingCall<WriteRequest, unknown> = (call, answer) => {
  const written = new Written();
  call.on("data", ({ resourceName, data }: WriteRequest) => written.add(resourceName, data));
  call.on("end", () => {
    try {
      written.check();
      answer(null, { committedSize: written.bytes });
    } catch (error) {
      answer({ code: status.DATA_LOSS, details: String(error) });
    }
  });
};

export async function serveGrpcJs(): Promise<number> {
  const server = new Server({ "grpc.max_receive_message_length": 8 << 20, "grpc-node.max_session_memory": 1000 });
  server.addService(serviceDefinition(), { find, read, write });
  return await new Promise((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    ),
  );
}
