/** Items 1 to 9: digests and names. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { isGrpcError } from "#grpc/status.ts";
import { Capabilities, type Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { at, needs, type Case } from "./case.ts";
import {
  batchReadBlobs,
  batchUpdateBlobs,
  code,
  codeOf,
  digestOf,
  ends,
  findMissingBlobs,
  fresh,
  functionNumbers,
  hasFunction,
  isThere,
  missing,
  nothing,
  readAll,
  readName,
  result,
  sameBytes,
  status,
  upload,
  writeName,
  writePieces,
  writeWhole,
  type Lab,
} from "./lab.ts";

const refused = [code.invalid, code.notFound];

const malformed: readonly (readonly [string, Digest])[] = [
  ["in capitals", { hash: digestOf(fresh()).hash.toUpperCase(), sizeBytes: 100 }],
  ["a digit short", { hash: digestOf(fresh()).hash.slice(1), sizeBytes: 100 }],
  ["a digit long", { hash: `${digestOf(fresh()).hash}0`, sizeBytes: 100 }],
  ["with a letter that is no digit", { hash: `g${digestOf(fresh()).hash.slice(1)}`, sizeBytes: 100 }],
  ["a path upwards", { hash: `../${"0".repeat(61)}`, sizeBytes: 100 }],
  ["empty", { hash: "", sizeBytes: 100 }],
  ["of a negative size", { hash: digestOf(fresh()).hash, sizeBytes: -1 }],
];

export const nameCases: readonly Case[] = [
  at(1, "the empty blob is always there", async (lab) => {
    deepEqual(await missing(lab, [nothing]), []);
    equal((await readAll(lab, readName(lab, nothing))).length, 0);
    equal(await writeWhole(lab, writeName(lab, nothing), new Uint8Array()), 0);
    const update = { digest: nothing, data: new Uint8Array(), compressor: 0 };
    const request = { instanceName: lab.instance, requests: [update], digestFunction: 0 };
    equal((await lab.client.unary(batchUpdateBlobs, request)).responses[0]?.status?.code ?? 0, 0);
    const asked = { instanceName: lab.instance, digests: [nothing], acceptableCompressors: [], digestFunction: 0 };
    const { responses } = await lab.client.unary(batchReadBlobs, asked);
    equal(responses[0]?.status?.code ?? 0, 0, "in a batch");
    equal(responses[0]?.data.length, 0);
  }),
  at(1, "no bytes with the hash of some are refused", async (lab) => {
    await ends(missing(lab, [{ hash: digestOf(fresh()).hash, sizeBytes: 0 }]), code.invalid, "FindMissingBlobs");
  }),
  at(2, "a blob is not served by its hash with another size", async (lab) => {
    const bytes = fresh(100);
    const digest = await upload(lab, bytes);
    const wrong = { ...digest, sizeBytes: 101 };
    await ends(readAll(lab, readName(lab, wrong)), refused, "Read");
    const found = await codeOf(missing(lab, [wrong]));
    if (found === 0) equal((await missing(lab, [wrong])).length, 1, "FindMissingBlobs says that it is there");
    else equal(found, code.invalid);
  }),
  at(2, "bytes are not taken under their hash with another size", async (lab) => {
    const bytes = fresh(100);
    for (const sizeBytes of [99, 101]) {
      const wrong = { ...digestOf(bytes), sizeBytes };
      await ends(writeWhole(lab, writeName(lab, wrong), bytes), code.invalid, `Write of 100 bytes as ${sizeBytes}`);
      const requests = [{ digest: wrong, data: bytes, compressor: 0 }];
      const call = lab.client.unary(batchUpdateBlobs, { instanceName: lab.instance, requests, digestFunction: 0 });
      equal((await call).responses[0]?.status?.code, code.invalid, `BatchUpdateBlobs of 100 bytes as ${sizeBytes}`);
    }
  }),
  ...malformed.map(([what, digest]) =>
    at(3, `a digest ${what} is refused`, async (lab) => {
      await ends(missing(lab, [digest]), code.invalid, "FindMissingBlobs");
      await ends(readAll(lab, readName(lab, digest)), refused, "Read");
      await ends(writeWhole(lab, writeName(lab, digest), fresh(100)), code.invalid, "Write");
      await ends(result(lab, digest), refused, "GetActionResult");
      const asked = { instanceName: lab.instance, digests: [digest], acceptableCompressors: [], digestFunction: 0 };
      const batch = lab.client.unary(batchReadBlobs, asked).then(({ responses }) => responses[0]?.status?.code);
      ok([...refused, undefined].includes((await batch.catch((e) => (isGrpcError(e) ? e.code : 0))) as never));
    }),
  ),
  at(4, "without a function, one of 64 digits is SHA-256", async (lab) => {
    const digest = await upload(lab, fresh());
    ok(await isThere(lab, digest, 0));
    ok(await isThere(lab, digest, functionNumbers.sha256));
  }),
  ...(["sha1", "sha384", "sha512"] as const).map((fn) =>
    at(4, `without a function, the length of a hash tells ${fn}`, async (lab) => {
      needs(hasFunction(lab, fn), `a server of ${fn}`);
      const bytes = fresh();
      const digest = digestOf(bytes, fn);
      await writeWhole(lab, writeName(lab, digest), bytes);
      ok(await isThere(lab, digest, 0));
      sameBytes(await readAll(lab, readName(lab, digest)), bytes, "Read");
    }),
  ),
  at(4, "BLAKE3 is named, in fields and in names", async (lab) => {
    needs(hasFunction(lab, "blake3"), "a server of blake3");
    const bytes = fresh();
    const digest = digestOf(bytes, "blake3");
    await writeWhole(lab, writeName(lab, digest, { fn: "blake3" }), bytes);
    ok(await isThere(lab, digest, functionNumbers.blake3));
    sameBytes(await readAll(lab, readName(lab, digest, { fn: "blake3" })), bytes, "Read");
    const taken = writeWhole(lab, writeName(lab, digest), bytes);
    await ends(taken, code.invalid, "Write of a BLAKE3 hash that is not said to be one");
  }),
  at(5, "a function that is not served is refused, and those that are are named", async (lab) => {
    const call = lab.client.unary(findMissingBlobs, {
      instanceName: lab.instance,
      blobDigests: [digestOf(fresh())],
      digestFunction: 77,
    });
    const error = await call.catch((thrown: unknown) => thrown);
    ok(isGrpcError(error), "it was taken");
    equal(error.code, code.invalid);
    ok(/sha.?256/i.test(error.message), `the message names none: ${error.message}`);
  }),
  at(5, "one hash under two functions is two blobs", async (lab) => {
    needs(hasFunction(lab, "blake3"), "a server of two functions of one length");
    const digest = await upload(lab, fresh());
    equal(await isThere(lab, digest, functionNumbers.blake3), false);
  }),
  at(6, "an instance may have slashes in its name, or none at all", async (lab) => {
    for (const instance of ["", "a/b-c/d"]) {
      const bytes = fresh();
      const digest = digestOf(bytes);
      const taken = await codeOf(writeWhole(lab, writeName(lab, digest, { instance }), bytes));
      if (taken === 0) sameBytes(await readAll(lab, readName(lab, digest, { instance })), bytes, "Read");
      else ok([code.notFound, code.denied].includes(taken as never), `Write in "${instance}" ended with ${taken}`);
    }
  }),
  ...["a/blobs/b", "uploads", "x/actions", "actionResults/x", "operations", "capabilities", "a/compressed-blobs"].map(
    (instanceName) =>
      at(6, `no instance is called ${instanceName}`, async (lab) => {
        const call = lab.client.unary(findMissingBlobs, { instanceName, blobDigests: [nothing], digestFunction: 0 });
        await ends(call, [code.invalid, code.notFound, code.denied], "FindMissingBlobs");
      }),
  ),
  ...["..", "a/../b", "a//b", "/a"].map((instanceName) =>
    at(6, `the instance ${instanceName} is refused`, async (lab) => {
      const call = lab.client.unary(findMissingBlobs, { instanceName, blobDigests: [nothing], digestFunction: 0 });
      await ends(call, [code.invalid, code.notFound, code.denied], "FindMissingBlobs");
    }),
  ),
  at(6, "an instance is known to every call, or to none", async (lab) => {
    const instance = `never-heard-of-${randomUUID()}`;
    const call = { instanceName: instance };
    const answers = [
      await codeOf(lab.client.unary(Capabilities.methods.getCapabilities, call)),
      await codeOf(lab.client.unary(findMissingBlobs, { ...call, blobDigests: [nothing], digestFunction: 0 })),
      await codeOf(readAll(lab, readName(lab, nothing, { instance }))),
      await codeOf(status(lab, writeName(lab, digestOf(fresh()), { instance }))),
    ];
    ok(new Set(answers).size === 1, `Capabilities, FindMissing, Read, QueryWriteStatus ended with ${answers.join()}`);
    ok([0, code.notFound, code.denied].includes(answers[0] as never));
  }),
  at(7, "a name to write may have anything behind it, a name to read may not", async (lab) => {
    const bytes = fresh();
    const digest = digestOf(bytes);
    await writeWhole(lab, `${writeName(lab, digest)}/some/path/of/mine.o`, bytes);
    ok(await isThere(lab, digest));
    await ends(readAll(lab, `${readName(lab, digest)}/mine.o`), refused, "Read");
  }),
  ...["", "blobs", "nonsense", "blobs/xyz", "uploads/u/blobs", "blobs//5", "uploads//blobs"].map((name) =>
    at(7, `"${name}" is no name`, async (lab) => {
      await ends(readAll(lab, name), refused, "Read");
      await ends(writeWhole(lab, name, fresh()), refused, "Write");
      await ends(status(lab, name), refused, "QueryWriteStatus");
    }),
  ),
  at(8, "the header for routing must name the same resource", async (lab) => {
    const bytes = fresh();
    const name = writeName(lab, digestOf(bytes));
    const header = (value: string) => ({
      metadata: [["build.bazel.remote.execution.v2.resource-name", value]] as const,
    });
    await ends(writeWhole(lab, name, bytes, header(`${name}0`)), code.invalid, "Write with the name of another");
    equal(await writeWhole(lab, name, bytes, header(name)), bytes.length);
    const reading = readName(lab, digestOf(bytes));
    await ends(readAll(lab, reading, { options: header("blobs/other") }), code.invalid, "Read with another's name");
    sameBytes(await readAll(lab, reading, { options: header(reading) }), bytes, "Read");
  }),
  at(9, "one uuid for two blobs is two uploads", async (lab) => {
    const uuid = randomUUID();
    const [first, second] = [fresh(1_000), fresh(1_000)];
    const firstName = writeName(lab, digestOf(first), { uuid });
    await writePieces(lab, firstName, [{ data: first.subarray(0, 400) }]).catch(() => {});
    await writeWhole(lab, writeName(lab, digestOf(second), { uuid }), second);
    await finishUpload(lab, firstName, first);
    sameBytes(await readAll(lab, readName(lab, digestOf(first))), first, "the first");
    sameBytes(await readAll(lab, readName(lab, digestOf(second))), second, "the second");
  }),
];

/** Continues where the server says that the upload stopped. */
export async function finishUpload(lab: Lab, name: string, bytes: Uint8Array): Promise<void> {
  const { committedSize, complete } = await status(lab, name);
  if (complete) return;
  const piece = { data: bytes.subarray(committedSize), writeOffset: committedSize, finishWrite: true };
  equal(await writePieces(lab, name, [piece]), bytes.length);
}
