import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ConnectionError, errorCode } from "#h2/frames/error-codes.ts";
import { fieldKind } from "./header-field.ts";
import { HpackDecoder } from "./hpack-decoder.ts";
import { ConstantHeaders, encodedBytesMax, HpackEncoder, type OutgoingHeaders } from "./hpack-encoder.ts";

const wide = { tableBytesMax: 4096, headerListBytesMax: 65_536, headerCountMax: 1_000 };

function decodeWith(decoder: HpackDecoder, hex: string): readonly string[] {
  const bytes = Buffer.from(hex.replaceAll(/\s/g, ""), "hex");
  return decoder.decode(bytes, 0, bytes.length).map(({ name, value }) => `${name}: ${value}`);
}

function encodeWith(encoder: HpackEncoder, headers: OutgoingHeaders): Buffer {
  const target = Buffer.alloc(encodedBytesMax(headers));
  return target.subarray(0, encoder.encode(headers, target, 0));
}

const broken = (error: unknown): boolean =>
  error instanceof ConnectionError && error.code === errorCode.compressionError;

describe("decoding the RFC's examples (appendix C)", () => {
  test("C.2: one field in each representation", () => {
    const decoder = new HpackDecoder(wide);
    deepEqual(decodeWith(decoder, "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572"), [
      "custom-key: custom-header",
    ]);
    equal(decoder.tableBytes, 55);
    deepEqual(decodeWith(decoder, "040c 2f73 616d 706c 652f 7061 7468"), [":path: /sample/path"]);
    deepEqual(decodeWith(decoder, "1008 7061 7373 776f 7264 0673 6563 7265 74"), ["password: secret"]);
    deepEqual(decodeWith(decoder, "82"), [":method: GET"]);
    equal(decoder.tableBytes, 55);
  });

  const requests = [
    [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"],
    [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com", "cache-control: no-cache"],
    [":method: GET", ":scheme: https", ":path: /index.html", ":authority: www.example.com", "custom-key: custom-value"],
  ];

  test("C.3 and C.4: three requests on one connection, plain and Huffman coded", () => {
    const plain = [
      "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
      "8286 84be 5808 6e6f 2d63 6163 6865",
      "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    const huffman = [
      "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
      "8286 84be 5886 a8eb 1064 9cbf",
      "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for (const blocks of [plain, huffman]) {
      const decoder = new HpackDecoder(wide);
      const sizes = blocks.map((hex, at) => {
        deepEqual(decodeWith(decoder, hex), requests[at]);
        return decoder.tableBytes;
      });
      deepEqual(sizes, [57, 110, 164]);
    }
  });

  const date1 = "Mon, 21 Oct 2013 20:13:21 GMT";
  const date2 = "Mon, 21 Oct 2013 20:13:22 GMT";
  const location = "location: https://www.example.com";
  const responses = [
    [":status: 302", "cache-control: private", `date: ${date1}`, location],
    [":status: 307", "cache-control: private", `date: ${date1}`, location],
    [
      ":status: 200",
      "cache-control: private",
      `date: ${date2}`,
      location,
      "content-encoding: gzip",
      "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ],
  ];

  test("C.5 and C.6: three responses with a table of 256 bytes, which evicts", () => {
    const plain = [
      `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
       2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
      "4803 3330 37c1 c0bf",
      `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04
       677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49
       553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31`,
    ];
    const huffman = [
      `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
       2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
      "4883 640e ffc1 c0bf",
      `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
       821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
    ];
    for (const blocks of [plain, huffman]) {
      const decoder = new HpackDecoder({ ...wide, tableBytesMax: 256 });
      const sizes = blocks.map((hex, at) => {
        deepEqual(decodeWith(decoder, hex), responses[at]);
        return decoder.tableBytes;
      });
      deepEqual(sizes, [222, 222, 215]);
    }
  });
});

describe("decoding invalid input", () => {
  const cases: Readonly<Record<string, string>> = {
    "index 0": "80",
    "an index beyond both tables": "be",
    "an index far beyond both tables": "ffffff0f",
    "a name index beyond both tables": "7f00 0161",
    "an integer that goes on for ever": "ffffffffffffffffff",
    "an integer of more than 28 bits": "ff80808080808001",
    "an integer that is cut off": "ff",
    "a name without its string": "40",
    "a value without its string": "4001 61",
    "a string longer than the block": "4005 6162",
    "a string length that is cut off": "407f",
    "a Huffman string with 8 bits of padding": "4181ff",
    "a Huffman string with zeroes for padding": "41811c",
    "a Huffman string that has the end-of-string symbol": "4184ffffffff",
    "a table size above the limit": "3fe21f",
    "a table size update behind a field": "8220",
  };
  for (const [name, hex] of Object.entries(cases))
    test(`${name} ends the connection`, () => {
      throws(() => decodeWith(new HpackDecoder(wide), hex), broken);
    });

  test("a malformed field is decoded and marked: the table must stay in step", () => {
    const bad: Readonly<Record<string, string>> = {
      "a capital in the name": "4001 41 0162",
      "a space in the name": "4002 6120 0162",
      "an empty name": "4000 0162",
      "an unknown pseudo-field": "4003 3a7878 0162",
      "a line feed in the value": "4001 61 02620a",
      "a carriage return in the value": "4001 61 020d62",
      "a NUL in the value": "4001 61 0100",
      "a space before the value": "4001 61 022062",
      "a tab behind the value": "4001 61 026209",
      "a field of one hop": "400a 636f6e6e656374696f6e 0162",
      "te that is not trailers": "4002 7465 04677a6970",
    };
    for (const [name, hex] of Object.entries(bad)) {
      const decoder = new HpackDecoder(wide);
      const bytes = Buffer.from(hex.replaceAll(" ", ""), "hex");
      equal(decoder.decode(bytes, 0, bytes.length)[0]?.kind, fieldKind.malformed, name);
      ok(decoder.tableBytes > 0, name);
    }
  });

  test("a name whose value was malformed may be used again", () => {
    const decoder = new HpackDecoder(wide);
    decodeWith(decoder, "4001 61 01 0a");
    const bytes = Buffer.from("7e0162", "hex");
    equal(decoder.decode(bytes, 0, bytes.length)[0]?.kind, fieldKind.regular);
  });
});

describe("the decoder's limits", () => {
  test("a block that is too large is decoded for the table, and dropped; a bomb is not decoded", () => {
    const decoder = new HpackDecoder({ tableBytesMax: 4096, headerListBytesMax: 16_384, headerCountMax: 10_000 });
    const big = Buffer.concat([Buffer.from("4001617fa11e", "hex"), Buffer.alloc(4_000, "x")]);
    const large = Buffer.concat([big, Buffer.alloc(14, 0xbe)]);
    deepEqual(decoder.decode(large, 0, large.length), []);
    ok(decoder.overflowed);
    deepEqual(decodeWith(decoder, "82"), [":method: GET"]);
    ok(!decoder.overflowed);
    equal(decoder.tableBytes, 4_033);
    const bomb = Buffer.concat([big, Buffer.alloc(8_000, 0xbe)]);
    throws(() => decoder.decode(bomb, 0, bomb.length), { code: errorCode.enhanceYourCalm });
  });

  test("more fields than allowed overflow, too", () => {
    const decoder = new HpackDecoder({ ...wide, headerCountMax: 3 });
    decodeWith(decoder, "828282");
    ok(!decoder.overflowed);
    decodeWith(decoder, "82828282");
    ok(decoder.overflowed);
  });

  test("a field larger than the table empties it", () => {
    const decoder = new HpackDecoder({ ...wide, tableBytesMax: 64 });
    decodeWith(decoder, "4001 61 0162");
    equal(decoder.tableBytes, 34);
    const long = Buffer.concat([Buffer.from("40016140", "hex"), Buffer.alloc(64, "x")]);
    decoder.decode(long, 0, long.length);
    equal(decoder.tableBytes, 0);
  });

  test("the table may shrink and grow again at a block's start", () => {
    const decoder = new HpackDecoder(wide);
    decodeWith(decoder, "4001 61 0162");
    deepEqual(decodeWith(decoder, "20 3fe11f 82"), [":method: GET"]);
    equal(decoder.tableBytes, 0);
  });
});

describe("the encoder", () => {
  const grpcReply = new ConstantHeaders([
    [":status", "200"],
    ["content-type", "application/grpc"],
    ["grpc-accept-encoding", "identity,gzip"],
  ]);

  test("sends a constant block in as many bytes as it has fields, once the peer knows it", () => {
    const encoder = new HpackEncoder();
    ok(encodeWith(encoder, grpcReply).length > 20);
    equal(encodeWith(encoder, grpcReply).toString("hex"), "88bfbe");
    equal(encodeWith(encoder, grpcReply).toString("hex"), "88bfbe");
    encodeWith(encoder, [["x-new", "1"]]);
    equal(encodeWith(encoder, grpcReply).toString("hex"), "88c0bf");
  });

  test("never indexes secrets, and marks them for intermediaries", () => {
    const encoder = new HpackEncoder();
    const decoder = new HpackDecoder(wide);
    for (let i = 0; i < 2; i += 1) {
      const block = encodeWith(encoder, [["authorization", "Bearer 123"]]);
      equal(decoder.decode(block, 0, block.length)[0]?.neverIndexed, true);
    }
    equal(encoder.tableBytes, 0);
  });

  test("keeps fields that change with every call out of the table", () => {
    const encoder = new HpackEncoder();
    encodeWith(encoder, [
      ["grpc-timeout", "29999m"],
      ["requestmetadata-bin", "x".repeat(170)],
    ]);
    equal(encoder.tableBytes, 0);
  });

  test("announces a smaller table and the size after it, as the peer's settings changed", () => {
    const encoder = new HpackEncoder();
    const decoder = new HpackDecoder(wide);
    const pairs = [["x-a", "1"]] as const;
    const first = encodeWith(encoder, pairs);
    decoder.decode(first, 0, first.length);
    encoder.peerAllows(0);
    encoder.peerAllows(4096);
    const block = encodeWith(encoder, pairs);
    equal(block.subarray(0, 4).toString("hex"), "203fe11f");
    deepEqual(
      decoder.decode(block, 0, block.length).map(({ name }) => name),
      ["x-a"],
    );
    equal(decoder.tableBytes, encoder.tableBytes);
  });

  test("the decoder returns whatever was encoded, in any order and with any tables", () => {
    const name = fc.oneof(
      fc.constantFrom(":path", "content-type", "authorization", "grpc-timeout", "te", "x-long-name-of-ours"),
      fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/),
    );
    const value = fc.oneof(
      fc.constantFrom("", "/", "200", "trailers", "application/grpc"),
      fc.stringMatching(/^[!-~]{0,300}$/),
    );
    const block = fc.array(fc.tuple(name, value), { maxLength: 12 });
    const step = fc.oneof(block, fc.constantFrom(0, 50, 200, 4096));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const encoder = new HpackEncoder();
        const decoder = new HpackDecoder(wide);
        for (const one of steps) {
          if (typeof one === "number") {
            encoder.peerAllows(one);
            continue;
          }
          for (const headers of [one, grpcReply]) {
            const bytes = encodeWith(encoder, headers);
            const sent = headers instanceof ConstantHeaders ? headers.fields.map((f) => [f.name, f.value]) : headers;
            deepEqual(
              decoder.decode(bytes, 0, bytes.length).map((field) => [field.name, field.value]),
              sent,
            );
            equal(decoder.tableBytes, encoder.tableBytes);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
