/** What a caller sends, as the handler gets it: one message after the other, decompressed and decoded. */
import { isFault } from "#base/fault.ts";
import { decode, type Message } from "#wire/message.ts";
import { encodingsTaken, unpack } from "./compression.ts";
import type { Inbox } from "./body/inbox.ts";
import type { Framed } from "./body/message-reader.ts";
import { PartInbox, type Item } from "./body/part-inbox.ts";
import type { ServerCall } from "./server-call.ts";
import { grpcCode, GrpcError } from "./status.ts";

/** The requests of a call with many, as they are asked for. */
export async function* requestsOf(
  type: Message<unknown>,
  inbox: Inbox | PartInbox,
  call: ServerCall<unknown>,
  sizeMax: number,
): AsyncGenerator<unknown> {
  try {
    for (;;) {
      const message: Item | undefined = await inbox.next();
      if (!message) return;
      if (message.part !== undefined) yield message.part;
      else
        yield message.compressed ? await readRequest(type, message, call, sizeMax) : decodeRequest(type, message.bytes);
    }
  } finally {
    if (inbox instanceof PartInbox) inbox.release();
  }
}

/** One request, perhaps compressed. `sizeMax` limits its decompressed size. */
export async function readRequest(
  type: Message<unknown>,
  { bytes, compressed }: Framed,
  call: ServerCall<unknown>,
  sizeMax: number,
): Promise<unknown> {
  return decodeRequest(type, compressed ? await unpacked(bytes, call, sizeMax) : bytes);
}

export function decodeRequest(type: Message<unknown>, bytes: Buffer): unknown {
  try {
    return decode(type, bytes);
  } catch (error) {
    if (!isFault(error, "invalid")) throw error;
    throw new GrpcError(grpcCode.invalidArgument, `the request cannot be read: ${error.message}`);
  }
}

function unpacked(bytes: Buffer, call: ServerCall<unknown>, sizeMax: number): Promise<Buffer> {
  const encoding = call.headers.get("grpc-encoding");
  if (encoding === "gzip") return unpack(bytes, sizeMax);
  if (encoding === undefined || encoding === "identity")
    throw new GrpcError(grpcCode.internal, "a compressed message without grpc-encoding");
  const error = new GrpcError(grpcCode.unimplemented, `messages compressed with ${encoding} are not supported`);
  call.trailerFields = [["grpc-accept-encoding", encodingsTaken]];
  throw error;
}
