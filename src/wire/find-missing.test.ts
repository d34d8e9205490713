import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { findMissingRequest, findMissingResponse } from "./find-missing.ts";
import {
  FindMissingBlobsRequest,
  FindMissingBlobsResponse,
} from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode } from "./message.ts";

const hex = fc.stringMatching(/^[0-9a-f]{64}$/);
const digest = fc.record({
  hash: fc.oneof({ arbitrary: hex, weight: 5 }, fc.constant(""), fc.stringMatching(/^[0-9a-f]{40}$/)),
  sizeBytes: fc.oneof(fc.nat(), fc.maxSafeNat()),
});
const request = fc.record({
  instanceName: fc.string({ unit: "grapheme" }),
  blobDigests: fc.array(digest, { maxLength: 5 }),
  digestFunction: fc.nat({ max: 12 }),
});
const textOf = ({ hash, sizeBytes }: { readonly hash: string; readonly sizeBytes: number }): string =>
  `${hash}/${sizeBytes}`;

/** The decoded request, or "refused". */
const attempt = <T>(read: () => T): T | "refused" => {
  try {
    return read();
  } catch (error) {
    if (!isFault(error, "invalid")) throw error;
    return "refused";
  }
};

const byHand = (bytes: Buffer) => attempt(() => decode(findMissingRequest, bytes));
const generated = (bytes: Buffer) =>
  attempt(() => {
    const { instanceName, blobDigests, digestFunction } = decode(FindMissingBlobsRequest, bytes);
    return { instanceName, digests: blobDigests.map(textOf), digestFunction };
  });

describe("FindMissingBlobs by hand", () => {
  test("has the bytes of the generated code and reads what it reads", () => {
    fc.assert(
      fc.property(request, (message) => {
        const bytes = encode(FindMissingBlobsRequest, message);
        deepEqual(byHand(bytes), generated(bytes));
        const { instanceName, blobDigests, digestFunction } = message;
        const digests = blobDigests.map(textOf);
        deepEqual(encode(findMissingRequest, { instanceName, digests, digestFunction }), bytes);
        const response = encode(FindMissingBlobsResponse, { missingBlobDigests: blobDigests });
        deepEqual(encode(findMissingResponse, { missing: digests }), response);
        deepEqual(decode(findMissingResponse, response), { missing: digests });
      }),
      { numRuns: 300 },
    );
  });

  test("and refuses or reads changed bytes as that does", () => {
    const change = fc.record({ at: fc.nat(), to: fc.nat({ max: 255 }), insert: fc.boolean() });
    fc.assert(
      fc.property(request, fc.array(change, { minLength: 1, maxLength: 3 }), (message, changes) => {
        let bytes: Buffer = encode(FindMissingBlobsRequest, message);
        for (const { at, to, insert } of changes) {
          const place = at % (bytes.length + 1);
          bytes = Buffer.concat([bytes.subarray(0, place), Buffer.of(to), bytes.subarray(place + (insert ? 0 : 1))]);
        }
        const [hand, other] = [byHand(bytes), generated(bytes)];
        // It reads bytes that are not ASCII as Latin-1, the generated code as UTF-8 unless it refuses them: neither is
        // a digest.
        if (hand === "refused" || !hand.digests.some(isNotAscii)) deepEqual(hand, other);
        else equal(other === "refused" || other.digests.some(isNotAscii), true);
      }),
      { numRuns: 3_000 },
    );
  });

  test("leaves out the function's name, which has a field of its own", () => {
    const hash = "ab".repeat(32);
    const bytes = encode(findMissingResponse, { missing: [`blake3:${hash}/7`] });
    deepEqual(decode(FindMissingBlobsResponse, bytes).missingBlobDigests, [{ hash, sizeBytes: 7 }]);
    throws(() => encode(findMissingResponse, { missing: [`${hash}/x`] }), /not an int64/);
  });
});

const isNotAscii = (text: string): boolean => text.length !== Buffer.byteLength(text);
