/** Writes and reads blobs of a node, as a build client does. */
import { equal } from "node:assert/strict";
import { createHash } from "node:crypto";
import type { GrpcClient } from "#grpc/client.ts";
import type { Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream, type WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";

export const nameOf = (bytes: Uint8Array): Digest => ({
  hash: createHash("sha256").update(bytes).digest("hex"),
  sizeBytes: bytes.length,
});

/** In one message, or in several of this many bytes. */
export async function writeBlob(
  client: GrpcClient,
  data: Uint8Array,
  messageBytes: number = data.length,
): Promise<Digest> {
  const { hash, sizeBytes } = nameOf(data);
  async function* requests(): AsyncGenerator<WriteRequest> {
    for (let at = 0; at < sizeBytes; at += messageBytes) {
      const finishWrite = at + messageBytes >= sizeBytes;
      const resourceName = `uploads/a4a4b9f4-1c6a-4b1c-8a8e-4f1f8e0a2f11/blobs/${hash}/${sizeBytes}`;
      yield { resourceName, writeOffset: at, finishWrite, data: data.subarray(at, at + messageBytes) };
    }
  }
  const { committedSize } = await client.clientStream(ByteStream.methods.write, requests());
  equal(committedSize, sizeBytes);
  return { hash, sizeBytes };
}

export async function readBlob(client: GrpcClient, { hash, sizeBytes }: Digest): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  const request = { resourceName: `blobs/${hash}/${sizeBytes}`, readOffset: 0, readLimit: 0 };
  for await (const { data } of client.serverStream(ByteStream.methods.read, request)) parts.push(Uint8Array.from(data));
  return Buffer.concat(parts);
}
