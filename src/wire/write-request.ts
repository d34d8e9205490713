/**
 * ByteStream.Write without a copy: the data stays in the pieces in which it was read from the socket, to be hashed and
 * written one after the other. The generated code would need the whole message in one piece first.
 *
 * Stands in for the generated message: `{ ...method, request: writeRequest }`.
 */
import { isFault } from "#base/fault.ts";
import { WriteRequest } from "./generated/google/bytestream/bytestream.ts";
import { decode, type Message } from "./message.ts";
import { Reader } from "./reader.ts";

export type WriteInPieces = Omit<WriteRequest, "data"> & {
  /** In their order; none of them is empty. */
  readonly data: readonly Uint8Array[];
};

const tags = { resourceName: 10, writeOffset: 16, finishWrite: 24, data: 82 } as const;

const ofWhole = ({ data, ...rest }: WriteRequest): WriteInPieces => ({ ...rest, data: data.length > 0 ? [data] : [] });

export const writeRequest: Message<WriteInPieces> = {
  typeName: WriteRequest.typeName,
  write: ({ data, ...rest }, to) => WriteRequest.write({ ...rest, data: Buffer.concat(data) }, to),
  read(from, end, before) {
    if (before) return ofWhole(WriteRequest.read(from, end, { ...before, data: Buffer.concat(before.data) }));
    return ofWhole(WriteRequest.read(from, end));
  },
  readPieces: (first, more) =>
    fromPieces(first, more) ?? ofWhole(decode(WriteRequest, Buffer.concat([first, ...more]))),
};

/** As every client writes it: the data comes last, and what is before it lies in the first piece. Else undefined. */
function fromPieces(first: Buffer, more: readonly Buffer[]): WriteInPieces | undefined {
  let bytes = first.length;
  for (const piece of more) bytes += piece.length;
  const from = new Reader(first);
  let resourceName = "";
  let writeOffset = 0;
  let finishWrite = false;
  try {
    while (from.pos < first.length) {
      const tag = from.tag();
      if (tag === tags.resourceName) resourceName = from.string();
      else if (tag === tags.writeOffset) writeOffset = from.int64();
      else if (tag === tags.finishWrite) finishWrite = from.bool();
      else if (tag === tags.data) {
        const length = from.uint32();
        if (length === 0 || from.pos + length !== bytes) return undefined;
        const data = from.pos < first.length ? [first.subarray(from.pos), ...more] : more;
        return { resourceName, writeOffset, finishWrite, data };
      } else return undefined;
    }
  } catch (error) {
    if (!isFault(error, "invalid")) throw error;
  }
  return undefined;
}
