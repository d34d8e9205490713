/**
 * ByteStream.Write while it arrives: a request that writes much is delivered as several that write a part each, one
 * after the other. The generated code would need the whole message in one piece first.
 *
 * Replaces the generated message: `{ ...method, request: writeRequest }`.
 */
import { isFault } from "#base/fault.ts";
import { WriteRequest } from "./generated/google/bytestream/bytestream.ts";
import type { Message, MessageParts } from "./message.ts";
import { Reader } from "./reader.ts";

const tags = { resourceName: 10, writeOffset: 16, finishWrite: 24, data: 82 } as const;

export const writeRequest: Message<WriteRequest> = { ...WriteRequest, inParts };

/**
 * As every client writes it: the data comes last, and the fields before it are within the first bytes. Otherwise
 * undefined.
 */
function inParts(first: Buffer, length: number): MessageParts<WriteRequest> | undefined {
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
        const dataBytes = from.uint32();
        if (dataBytes === 0 || from.pos + dataBytes !== length) return undefined;
        return {
          dataAt: from.pos,
          part: (data, before, last) => ({
            resourceName,
            writeOffset: writeOffset + before,
            finishWrite: finishWrite && last,
            data,
          }),
        };
      } else return undefined;
    }
  } catch (error) {
    if (!isFault(error, "invalid")) throw error;
  }
  return undefined;
}
