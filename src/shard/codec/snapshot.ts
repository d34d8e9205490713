/** A snapshot's texts as bytes: each with its length before it, so that a store may split the bytes anywhere. */
import { Fault } from "#base/fault.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });
const lengthBytes = 4;

export function encodeText(text: string): Uint8Array {
  const sizeBytes = Buffer.byteLength(text);
  const framed = Buffer.allocUnsafeSlow(lengthBytes + sizeBytes);
  framed.writeUInt32LE(sizeBytes, 0);
  framed.write(text, lengthBytes);
  return framed;
}

export async function* decodeTexts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let left: Uint8Array = new Uint8Array();
  for await (const chunk of chunks) {
    left = left.length === 0 ? chunk : Buffer.concat([left, chunk]);
    for (;;) {
      if (left.length < lengthBytes) break;
      const end = lengthBytes + new DataView(left.buffer, left.byteOffset).getUint32(0, true);
      if (left.length < end) break;
      yield decode(left.subarray(lengthBytes, end));
      left = left.subarray(end);
    }
  }
  if (left.length > 0) throw new Fault("corrupt", "decode snapshot", { why: "cut short", leftBytes: left.length });
}

function decode(body: Uint8Array): string {
  try {
    return decoder.decode(body);
  } catch (cause) {
    throw new Fault("corrupt", "decode snapshot", { sizeBytes: body.length }, cause);
  }
}
