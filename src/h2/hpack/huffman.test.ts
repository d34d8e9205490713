import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { huffmanDecode, huffmanDecodedMax, huffmanEncode, huffmanLength, huffmanSawControl } from "./huffman.ts";

function decode(bytes: Uint8Array): string | undefined {
  const target = Buffer.alloc(huffmanDecodedMax(bytes.length) + 1);
  const length = huffmanDecode(bytes, 0, bytes.length, target);
  return length < 0 ? undefined : target.toString("latin1", 0, length);
}

function encode(text: string): Buffer {
  const target = Buffer.alloc(huffmanLength(text) + 4);
  return target.subarray(0, huffmanEncode(text, target, 0));
}

describe("the Huffman code", () => {
  test("is that of the RFC's examples (appendix C.4 and C.6)", () => {
    const examples: readonly [string, string][] = [
      ["www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"],
      ["no-cache", "a8eb10649cbf"],
      ["custom-key", "25a849e95ba97d7f"],
      ["custom-value", "25a849e95bb8e8b4bf"],
      ["302", "6402"],
      ["private", "aec3771a4b"],
      ["Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"],
      ["https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"],
    ];
    for (const [text, hex] of examples) {
      equal(encode(text).toString("hex"), hex);
      equal(decode(Buffer.from(hex, "hex")), text);
    }
  });

  test("every text of single bytes is decoded again, and its length was predicted", () => {
    const text = fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 300 });
    fc.assert(
      fc.property(text, (chars) => {
        const given = String.fromCharCode(...chars);
        const encoded = encode(given);
        equal(encoded.length, huffmanLength(given));
        equal(decode(encoded), given);
        equal(huffmanSawControl, /[\0\r\n]/.test(given));
      }),
      { numRuns: 500 },
    );
  });

  test("every byte, alone and in pairs", () => {
    for (let a = 0; a < 256; a += 1)
      for (let b = 0; b < 256; b += 5) {
        const text = String.fromCharCode(a, b);
        equal(decode(encode(text)), text);
      }
  });

  test("padding is at most 7 bits, and all ones; the end-of-string symbol never occurs", () => {
    deepEqual(
      ["", "ff", "ffff", "1c", "1f", "1fff", "fffffffc", "ffffffff", "fe", "0fff"].map((hex) =>
        decode(Buffer.from(hex, "hex")),
      ),
      ["", undefined, undefined, undefined, "a", undefined, undefined, undefined, undefined, undefined],
    );
  });

  test("arbitrary bytes decode to something that encodes to them again, or are refused", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const text = decode(bytes);
        if (text !== undefined) deepEqual(new Uint8Array(encode(text)), bytes);
      }),
      { numRuns: 2_000 },
    );
  });
});
