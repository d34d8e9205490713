/** A snapshot's texts as bytes: each with its length before it, so that a store may cut the bytes as it likes. */
import { Fault } from "#base/fault.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
const lengthBytes = 4;

export function encodeText(text: string): Uint8Array {
  const body = encoder.encode(text);
  const framed = new Uint8Array(lengthBytes + body.length);
  new DataView(framed.buffer).setUint32(0, body.length, true);
  framed.set(body, lengthBytes);
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
