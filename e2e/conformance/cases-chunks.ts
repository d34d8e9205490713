/** Items 34 to 36: blobs as chunks. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { type Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { at, needs, type Case } from "./case.ts";
import {
  code,
  digestOf,
  ends,
  fresh,
  isThere,
  missing,
  readAll,
  readName,
  sameBytes,
  spliceBlob,
  splitBlob,
  upload,
  type Lab,
} from "./lab.ts";

const MiB = 1024 * 1024;

const split = async (lab: Lab, blobDigest: Digest) => {
  needs(lab.capabilities.cacheCapabilities?.splitBlobSupport, "a server of SplitBlob");
  const request = { instanceName: lab.instance, blobDigest, digestFunction: 0, chunkingFunction: 0 };
  return (await lab.client.unary(splitBlob, request)).chunkDigests;
};
const splice = async (lab: Lab, blobDigest: Digest, chunkDigests: readonly Digest[]) => {
  needs(lab.capabilities.cacheCapabilities?.spliceBlobSupport, "a server of SpliceBlob");
  const request = { instanceName: lab.instance, blobDigest, chunkDigests, digestFunction: 0, chunkingFunction: 0 };
  return (await lab.client.unary(spliceBlob, request)).blobDigest;
};
export const chunkCases: readonly Case[] = [
  at(34, "the chunks of a blob are there, and are the blob", async (lab) => {
    for (const bytes of [fresh(100), fresh(3 * MiB)]) {
      const chunks = await split(lab, await upload(lab, bytes));
      deepEqual(await missing(lab, chunks), []);
      const parts: Buffer[] = [];
      for (const chunk of chunks) parts.push(await readAll(lab, readName(lab, chunk)));
      sameBytes(Buffer.concat(parts), bytes, "the chunks together");
    }
  }),
  at(34, "what is not there cannot be split", async (lab) => {
    await ends(split(lab, digestOf(fresh())), code.notFound, "SplitBlob");
  }),
  at(35, "a blob is made of chunks, one or many, the same one twice", async (lab) => {
    const [one, two] = [fresh(1_000), fresh(2_000)];
    const [first, second] = [await upload(lab, one), await upload(lab, two)];
    const whole = Buffer.concat([one, two, one]);
    deepEqual(await splice(lab, digestOf(whole), [first, second, first]), digestOf(whole));
    sameBytes(await readAll(lab, readName(lab, digestOf(whole))), whole, "the whole");
    deepEqual(await splice(lab, first, [first]), first);
  }),
  at(35, "chunks that are another blob are refused", async (lab) => {
    const chunk = await upload(lab, fresh(1_000));
    const wanted = digestOf(fresh(1_000));
    await ends(splice(lab, wanted, [chunk]), code.invalid, "of the same size");
    await ends(splice(lab, digestOf(fresh(2_000)), [chunk]), code.invalid, "of another size");
    equal(await isThere(lab, wanted), false);
  }),
  at(35, "a chunk that is missing is not found", async (lab) => {
    const one = await upload(lab, fresh(1_000));
    const wanted = { ...digestOf(fresh()), sizeBytes: 2_000 };
    await ends(splice(lab, wanted, [one, digestOf(fresh(1_000))]), code.notFound, "SpliceBlob");
  }),
  at(35, "sizes that are too large to add are refused", async (lab) => {
    const chunk = await upload(lab, fresh(1_000));
    const huge = { ...digestOf(fresh()), sizeBytes: Number.MAX_SAFE_INTEGER };
    await ends(splice(lab, { ...huge, sizeBytes: 999 }, [huge, huge, chunk]), [code.invalid, code.notFound], "Splice");
  }),
  at(36, "a blob that was made of chunks and is said to be there can be read", async (lab) => {
    const parts = [fresh(5_000), fresh(70_000)];
    const chunks = [await upload(lab, parts[0] as Buffer), await upload(lab, parts[1] as Buffer)];
    const whole = Buffer.concat(parts);
    await splice(lab, digestOf(whole), chunks);
    ok(await isThere(lab, digestOf(whole)));
    const got = await readAll(lab, readName(lab, digestOf(whole)), { offset: 4_990, limit: 20 });
    sameBytes(got, whole.subarray(4_990, 5_010), "across two chunks");
  }),
];
