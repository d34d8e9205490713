import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Fault, isFault } from "#base/fault.ts";
import { answerRaw, rawFindMissingRequest, type RawLookup } from "./find-missing-raw.ts";
import {
  type Digest,
  FindMissingBlobsRequest,
  FindMissingBlobsResponse,
} from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode } from "./message.ts";

const hash = (length = 64) =>
  fc
    .array(fc.constantFrom(...Array.from("0123456789abcdef")), { minLength: length, maxLength: length })
    .map((digits) => digits.join(""));
const empty = "e".repeat(64);

/** Knows the blobs in the set, by hash and size. */
const knowing = (there: ReadonlySet<string>, hexLength = 64): RawLookup => ({
  hexLength,
  find({ hashes, sizes, count }, found) {
    const bytes = hexLength / 2;
    for (let i = 0; i < count; i += 1) {
      const hex = Buffer.from(hashes.subarray(i * bytes, (i + 1) * bytes)).toString("hex");
      if (there.has(`${hex}/${sizes[i]}`)) found[i] = 1;
    }
  },
  checkEmpty(given) {
    if (given !== empty) throw new Fault("invalid", "look up", { given });
  },
});

function ask(request: Uint8Array, there: ReadonlySet<string>): readonly Digest[] {
  const raw = decode(rawFindMissingRequest, request);
  return decode(FindMissingBlobsResponse, Buffer.from(answerRaw(raw, knowing(there)))).missingBlobDigests;
}

const plain = ({ hash: hex, sizeBytes }: Digest): string => `${hex}/${sizeBytes}`;

describe("FindMissingBlobs without messages", () => {
  test("finds what the generated code finds, each digest once", () => {
    const digest = fc.record(
      {
        hash: hash(),
        sizeBytes: fc.oneof(
          fc.integer({ min: 1, max: 300 }),
          fc.maxSafeNat().filter((n) => n > 0),
        ),
      },
      { noNullPrototype: true },
    );
    const few = fc.array(digest, { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(few, fc.array(fc.nat({ max: 29 }), { maxLength: 60 }), fc.string(), (known, picks, instanceName) => {
        const blobDigests = picks.map((pick) => known[pick % known.length] as Digest);
        const there = new Set(known.filter((_, i) => i % 2 === 0).map((one) => `${one.hash}/${one.sizeBytes}`));
        const request = encode(FindMissingBlobsRequest, { instanceName, blobDigests, digestFunction: 1 });
        const wanted = new Map<string, Digest>();
        for (const one of blobDigests) {
          const name = `${one.hash}/${one.sizeBytes}`;
          if (!there.has(name)) wanted.set(name, one);
        }
        deepEqual(ask(request, there), [...wanted.values()]);
        const { instanceName: read, digestFunction } = decode(rawFindMissingRequest, request);
        deepEqual([read, digestFunction], [instanceName.toWellFormed(), 1]);
      }),
    );
  });

  for (const hexLength of [40, 96, 128])
    test(`hashes of ${hexLength} digits are found, too`, () => {
      const one = fc.record({ hash: hash(hexLength), sizeBytes: fc.integer({ min: 1 }) });
      const digests = fc.uniqueArray(one, { selector: plain });
      fc.assert(
        fc.property(digests, (blobDigests) => {
          const request = encode(FindMissingBlobsRequest, { instanceName: "", blobDigests, digestFunction: 0 });
          const there = new Set(blobDigests.filter((_, i) => i % 2 === 0).map(plain));
          const wanted = blobDigests.filter((digest) => !there.has(plain(digest)));
          const answer = Buffer.from(answerRaw(decode(rawFindMissingRequest, request), knowing(there, hexLength)));
          deepEqual(decode(FindMissingBlobsResponse, answer).missingBlobDigests.map(plain), wanted.map(plain));
        }),
      );
    });

  test("many thousands, all of them missing, some of them twice", () => {
    const one = (i: number): Digest => ({ hash: i.toString(16).padStart(64, "0"), sizeBytes: 1 + (i % 7) });
    const blobDigests = Array.from({ length: 30_000 }, (_, i) => one(i % 20_000));
    const request = encode(FindMissingBlobsRequest, { instanceName: "", blobDigests, digestFunction: 0 });
    equal(ask(request, new Set()).length, 20_000);
    equal(ask(request, new Set()).length, 20_000, "what is kept from the call before does not matter");
  });

  for (const [what, given] of [
    ["in capitals", { hash: "A".repeat(64), sizeBytes: 1 }],
    ["too short", { hash: "a".repeat(63), sizeBytes: 1 }],
    ["empty", { hash: "", sizeBytes: 1 }],
    ["with something else in it", { hash: "z".repeat(64), sizeBytes: 1 }],
    ["with a letter after f", { hash: `${"a".repeat(63)}g`, sizeBytes: 1 }],
    ["with a control character", { hash: `${"a".repeat(30)}\u0001${"a".repeat(33)}`, sizeBytes: 1 }],
    ["of a negative size", { hash: "a".repeat(64), sizeBytes: -1 }],
    ["of no size, but not the hash of nothing", { hash: "a".repeat(64), sizeBytes: 0 }],
  ] as const)
    test(`a hash ${what} is refused, whatever else was asked for`, () => {
      const blobDigests = [{ hash: "b".repeat(64), sizeBytes: 5 }, given];
      const request = encode(FindMissingBlobsRequest, { instanceName: "", blobDigests, digestFunction: 0 });
      throws(
        () => ask(request, new Set()),
        (error) => isFault(error, "invalid"),
      );
    });

  test("any other character anywhere in a hash is refused", () => {
    for (let code = 0; code < 128; code += 1) {
      const character = String.fromCharCode(code);
      if ("0123456789abcdef".includes(character)) continue;
      const place = (code * 7) % 64;
      const blobDigests = [{ hash: `${"0".repeat(place)}${character}${"f".repeat(63 - place)}`, sizeBytes: 5 }];
      const request = encode(FindMissingBlobsRequest, { instanceName: "", blobDigests, digestFunction: 0 });
      throws(() => ask(request, new Set()), /lower-case hex digits/, `${code}`);
    }
  });

  test("the empty blob is never missing", () => {
    const blobDigests = [{ hash: empty, sizeBytes: 0 }];
    deepEqual(
      ask(encode(FindMissingBlobsRequest, { instanceName: "x", blobDigests, digestFunction: 0 }), new Set()),
      [],
    );
  });

  test("for any bytes: an answer, or a Fault", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          ask(bytes, new Set());
        } catch (error) {
          if (!isFault(error, "invalid")) throw error;
        }
      }),
    );
  });
});
