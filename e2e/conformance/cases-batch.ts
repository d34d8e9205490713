/** Items 31 and 32: batches. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { Compressor_Value, type Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { at, needs, type Case } from "./case.ts";
import {
  batchReadBlobs,
  batchUpdateBlobs,
  code,
  digestOf,
  ends,
  fresh,
  freshText,
  missing,
  nothing,
  readAll,
  readName,
  sameBytes,
  unzstd,
  upload,
  zstd,
  type Lab,
} from "./lab.ts";

const MiB = 1024 * 1024;

const update = async (lab: Lab, requests: readonly { digest: Digest; data: Uint8Array; compressor?: number }[]) => {
  const request = {
    instanceName: lab.instance,
    requests: requests.map((one) => ({ compressor: 0, ...one })),
    digestFunction: 0,
  };
  return (await lab.client.unary(batchUpdateBlobs, request)).responses;
};
const read = async (lab: Lab, digests: readonly Digest[], acceptableCompressors: readonly number[] = []) => {
  const request = { instanceName: lab.instance, digests, acceptableCompressors, digestFunction: 0 };
  return (await lab.client.unary(batchReadBlobs, request)).responses;
};
const max = (lab: Lab): number => lab.capabilities.cacheCapabilities?.maxBatchTotalSizeBytes ?? 0;
export const batchCases: readonly Case[] = [
  at(31, "each blob of a batch has a status of its own", async (lab) => {
    const [good, bad] = [fresh(), fresh()];
    const wrong = digestOf(fresh());
    const twice = { digest: digestOf(good), data: good };
    const responses = await update(lab, [
      twice,
      { digest: wrong, data: bad },
      twice,
      { digest: nothing, data: Buffer.alloc(0) },
    ]);
    const codes = responses.map(({ digest, status }) => [digest?.hash, status?.code ?? 0]);
    const goodOnes = codes.filter(([hash]) => hash === digestOf(good).hash);
    ok(goodOnes.length >= 1 && goodOnes.every(([, ended]) => ended === 0));
    deepEqual(
      codes.filter(([hash]) => hash === wrong.hash),
      [[wrong.hash, code.invalid]],
    );
    deepEqual(await missing(lab, [digestOf(good), wrong]), [wrong]);
  }),
  at(31, "a batch that is too large is refused as a whole", async (lab) => {
    const limit = needs(max(lab) || undefined, "a server with a limit");
    if (limit > 16 * MiB) return;
    const data = fresh(Math.floor(limit / 3) + 1);
    const requests = [data, Buffer.concat([data, fresh(1)]), Buffer.concat([data, fresh(2)])].map((one) => ({
      digest: digestOf(one),
      data: one,
    }));
    await ends(update(lab, requests), code.invalid, "BatchUpdateBlobs");
  }),
  at(31, "a batch of nearly the limit is taken", async (lab) => {
    const limit = needs(max(lab) || undefined, "a server with a limit");
    const data = fresh(Math.min(limit, 4 * MiB) - 1_000);
    const [response] = await update(lab, [{ digest: digestOf(data), data }]);
    equal(response?.status?.code ?? 0, 0);
  }),
  at(31, "a blob of a batch may be compressed", async (lab) => {
    const offered = lab.capabilities.cacheCapabilities?.supportedBatchUpdateCompressors ?? [];
    needs(offered.includes(Compressor_Value.ZSTD), "a server of zstd in batches");
    const bytes = freshText(20_000);
    const digest = digestOf(bytes);
    const [response] = await update(lab, [{ digest, data: zstd(bytes), compressor: Compressor_Value.ZSTD }]);
    equal(response?.status?.code ?? 0, 0);
    sameBytes(await readAll(lab, readName(lab, digest)), bytes, "Read");
    const [wrong] = await update(lab, [
      { digest: digestOf(fresh()), data: fresh(), compressor: Compressor_Value.ZSTD },
    ]);
    equal(wrong?.status?.code, code.invalid, "what is no zstd");
  }),
  at(31, "an empty batch is fine", async (lab) => deepEqual(await update(lab, []), [])),
  at(32, "what is there comes, what is not is told by itself", async (lab) => {
    const bytes = fresh();
    const gone = digestOf(fresh());
    const responses = await read(lab, [await upload(lab, bytes), gone, nothing]);
    const found = responses.find(({ digest }) => digest?.hash === digestOf(bytes).hash);
    sameBytes(found?.data ?? Buffer.alloc(0), bytes, "the one that is there");
    equal(responses.find(({ digest }) => digest?.hash === gone.hash)?.status?.code, code.notFound);
    deepEqual(await read(lab, []), []);
  }),
  at(32, "blobs are compressed only for who takes that", async (lab) => {
    const bytes = freshText(50_000);
    const digest = await upload(lab, bytes);
    const [plain] = await read(lab, [digest]);
    equal(plain?.compressor, Compressor_Value.IDENTITY);
    sameBytes(plain?.data ?? Buffer.alloc(0), bytes, "plain");
    const [packed] = await read(lab, [digest], [Compressor_Value.ZSTD]);
    const data = packed?.data ?? Buffer.alloc(0);
    sameBytes(packed?.compressor === Compressor_Value.ZSTD ? unzstd(data) : data, bytes, "compressed");
  }),
  at(32, "a limit is told, and more than it is refused", async (lab) => {
    const limit = max(lab);
    ok(limit > 0, "0 is taken for 4 MB by some clients");
    ok(limit <= 4 * MiB, "an answer would be longer than clients take");
    const digests = Array.from({ length: 3 }, () => ({ ...digestOf(fresh()), sizeBytes: Math.ceil(limit / 2) }));
    await ends(read(lab, digests), code.invalid, "BatchReadBlobs");
  }),
];
