/** Items 10 to 22: ByteStream.Write and QueryWriteStatus. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { detailsOf, isGrpcError } from "#grpc/status.ts";
import { RequestMetadata } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { encode } from "#wire/message.ts";
import { at, needs, Skip, type Case } from "./case.ts";
import { finishUpload } from "./cases-names.ts";
import {
  code,
  codeOf,
  digestOf,
  ends,
  fresh,
  freshText,
  hasZstd,
  isThere,
  openWrite,
  read,
  readAll,
  readName,
  sameBytes,
  status,
  until,
  upload,
  write,
  writeName,
  writePieces,
  writeWhole,
  pieces,
  zstd,
  type Lab,
} from "./lab.ts";

const first = (resourceName: string, data: Uint8Array) => ({ resourceName, writeOffset: 0, finishWrite: false, data });
const next = (writeOffset: number, data: Uint8Array) => ({ resourceName: "", writeOffset, finishWrite: false, data });

const toolHeader = (toolName: string) => {
  const metadata = { actionId: "", toolInvocationId: "", correlatedInvocationsId: "", actionMnemonic: "" };
  const rest = { targetId: "", configurationId: "", toolDetails: { toolName, toolVersion: "1.0" } };
  const bytes = encode(RequestMetadata, { ...metadata, ...rest });
  return { metadata: [["build.bazel.remote.execution.v2.requestmetadata-bin", bytes]] as const };
};

export const writeCases: readonly Case[] = [
  at(10, "what is there already is answered before it has been sent", async (lab) => {
    const bytes = fresh(200_000);
    await upload(lab, bytes);
    const writing = openWrite(lab, { deadlineMs: 10_000 });
    writing.send(first(writeName(lab, digestOf(bytes)), bytes.subarray(0, 1_000)));
    equal((await writing.answer).committedSize, bytes.length);
    writing.end();
  }),
  at(10, "what is there already and would be sent compressed is answered with -1", async (lab) => {
    needs(hasZstd(lab), "a server of zstd");
    const bytes = freshText(200_000);
    await upload(lab, bytes);
    const writing = openWrite(lab, { deadlineMs: 10_000 });
    writing.send(first(writeName(lab, digestOf(bytes), { compressed: true }), zstd(bytes).subarray(0, 10)));
    equal((await writing.answer).committedSize, -1);
    writing.end();
  }),
  at(11, "bytes of another digest are refused for good, and nothing is kept", async (lab) => {
    const bytes = fresh(1_000);
    const name = writeName(lab, digestOf(bytes));
    await ends(writeWhole(lab, name, fresh(1_000)), code.invalid, "in one message");
    const parts = [{ data: fresh(400) }, { data: fresh(600), finishWrite: true }];
    await ends(writePieces(lab, name, parts), code.invalid, "in two messages");
    equal(await isThere(lab, digestOf(bytes)), false);
    deepEqual(await status(lab, name), { committedSize: 0, complete: false });
  }),
  at(12, "more bytes than the digest says are refused at once", async (lab) => {
    const bytes = fresh(1_000);
    const writing = openWrite(lab, { deadlineMs: 10_000 });
    writing.send(first(writeName(lab, digestOf(bytes)), bytes));
    writing.send(next(1_000, fresh(10)));
    await ends(writing.answer, code.invalid, "the client is not done yet");
    writing.end();
    equal(await isThere(lab, digestOf(bytes)), false);
  }),
  at(12, "fewer bytes than the digest says are refused at the end", async (lab) => {
    const bytes = fresh(1_000);
    const name = writeName(lab, digestOf(bytes));
    await ends(writeWhole(lab, name, bytes.subarray(1)), code.invalid, "in one message");
    const parts = [{ data: bytes.subarray(0, 10) }, { data: bytes.subarray(10, 900), finishWrite: true }];
    await ends(writePieces(lab, name, parts), code.invalid, "in two messages");
    equal(await isThere(lab, digestOf(bytes)), false);
  }),
  at(13, "what was not said to be finished is not there, and can be gone on with", async (lab) => {
    const bytes = fresh(10_000);
    const name = writeName(lab, digestOf(bytes));
    await codeOf(writePieces(lab, name, [{ data: bytes.subarray(0, 4_000) }]));
    equal(await isThere(lab, digestOf(bytes)), false);
    const { committedSize, complete } = await status(lab, name);
    equal(complete, false);
    ok(committedSize <= 4_000);
    if (committedSize === 0) throw new Error("nothing was kept: a large upload begins again from zero");
    await finishUpload(lab, name, bytes);
    sameBytes(await readAll(lab, readName(lab, digestOf(bytes))), bytes, "Read");
  }),
  at(13, "all bytes, but not said to be finished, are not there", async (lab) => {
    const bytes = fresh(1_000);
    await codeOf(writePieces(lab, writeName(lab, digestOf(bytes)), [{ data: bytes }]));
    equal(await isThere(lab, digestOf(bytes)), false);
  }),
  at(14, "a write without a name is refused", async (lab) => {
    await ends(writeWhole(lab, "", fresh()), code.invalid, "no name");
    await ends(writePieces(lab, "", []), [code.invalid, 13], "no message at all");
  }),
  at(14, "the name need not be repeated, and may be", async (lab) => {
    const bytes = fresh(300);
    const name = writeName(lab, digestOf(bytes));
    const parts = [
      { data: bytes.subarray(0, 100) },
      { data: bytes.subarray(100, 200), resourceName: name },
      { data: bytes.subarray(200), finishWrite: true },
    ];
    equal(await writePieces(lab, name, parts), 300);
  }),
  at(14, "another name in the middle of a write is refused", async (lab) => {
    const bytes = fresh(300);
    const parts = [
      { data: bytes.subarray(0, 100) },
      { data: bytes.subarray(100), resourceName: writeName(lab, digestOf(fresh())), finishWrite: true },
    ];
    await ends(writePieces(lab, writeName(lab, digestOf(bytes)), parts), code.invalid, "Write");
    equal(await isThere(lab, digestOf(bytes)), false);
  }),
  at(14, "nothing may come after the last message", async (lab) => {
    const bytes = fresh(300);
    const parts = [{ data: bytes, finishWrite: true }, { data: fresh(10) }];
    await ends(writePieces(lab, writeName(lab, digestOf(bytes)), parts), code.invalid, "Write");
  }),
  at(15, "a write that begins beyond what is kept is out of range", async (lab) => {
    const bytes = fresh(1_000);
    const piece = { data: bytes.subarray(500), writeOffset: 500, finishWrite: true };
    await ends(writePieces(lab, writeName(lab, digestOf(bytes)), [piece]), code.outOfRange, "Write");
  }),
  at(15, "a negative offset is refused", async (lab) => {
    const bytes = fresh(1_000);
    const piece = { data: bytes, writeOffset: -1, finishWrite: true };
    await ends(writePieces(lab, writeName(lab, digestOf(bytes)), [piece]), [code.outOfRange, code.invalid], "Write");
  }),
  ...[90, 110].map((writeOffset) =>
    at(15, `a piece at ${writeOffset} where 100 was to come is refused`, async (lab) => {
      const bytes = fresh(1_000);
      const parts = [{ data: bytes.subarray(0, 100) }, { data: bytes.subarray(100), writeOffset, finishWrite: true }];
      await ends(writePieces(lab, writeName(lab, digestOf(bytes)), parts), code.invalid, "Write");
    }),
  ),
  at(15, "of compressed bytes, offsets go on by what was sent", async (lab) => {
    needs(hasZstd(lab), "a server of zstd");
    const bytes = freshText(100_000);
    const packed = zstd(bytes);
    const half = Math.floor(packed.length / 2);
    const parts = [{ data: packed.subarray(0, half) }, { data: packed.subarray(half), finishWrite: true }];
    await writePieces(lab, writeName(lab, digestOf(bytes), { compressed: true }), parts);
    sameBytes(await readAll(lab, readName(lab, digestOf(bytes))), bytes, "Read");
  }),
  ...(
    [
      ["bazel", "what was sent, or -1", (sent: number) => [sent, -1]],
      ["buck2", "what was sent, or -1", (sent: number) => [sent, -1]],
      ["siso", "the plain size", (_: number, size: number) => [size]],
      ["reclient", "the plain size", (_: number, size: number) => [size]],
    ] as const
  ).map(([tool, what, allowed]) =>
    at(16, `${tool} hears ${what} after a compressed upload`, async (lab) => {
      needs(hasZstd(lab), "a server of zstd");
      const bytes = freshText(50_000);
      const packed = zstd(bytes);
      const name = writeName(lab, digestOf(bytes), { compressed: true });
      const got = await writeWhole(lab, name, packed, toolHeader(tool));
      const wanted: readonly number[] = allowed(packed.length, bytes.length);
      ok(wanted.includes(got), `it hears ${got} of ${packed.length} sent and ${bytes.length} plain bytes`);
    }),
  ),
  at(17, "the status of what is there is complete, of what nobody knows nothing", async (lab) => {
    const bytes = fresh(1_000);
    const digest = await upload(lab, bytes);
    deepEqual(await status(lab, writeName(lab, digest)), { committedSize: 1_000, complete: true });
    const none = await status(lab, writeName(lab, digestOf(fresh())));
    deepEqual(none, { committedSize: 0, complete: false });
  }),
  at(18, "a compressed upload goes on at plain bytes, with a frame of its own", async (lab) => {
    needs(hasZstd(lab), "a server of zstd");
    const bytes = Buffer.concat([fresh(60_000), freshText(60_000)]);
    const name = writeName(lab, digestOf(bytes), { compressed: true });
    await codeOf(writePieces(lab, name, [{ data: zstd(bytes.subarray(0, 70_000)) }]));
    const { committedSize, complete } = await status(lab, name);
    equal(complete, false);
    ok(committedSize <= 70_000, `${committedSize} of 70000 plain bytes`);
    if (committedSize === 0) throw new Error("nothing was kept: a large upload begins again from zero");
    const rest = zstd(bytes.subarray(committedSize));
    const parts = [
      { data: rest.subarray(0, 20), writeOffset: committedSize },
      { data: rest.subarray(20), writeOffset: committedSize + 20, finishWrite: true },
    ];
    await writePieces(lab, name, parts);
    sameBytes(await readAll(lab, readName(lab, digestOf(bytes))), bytes, "Read");
  }),
  at(19, "a slow writer does not hold up another of the same blob, and both succeed", async (lab) => {
    const bytes = fresh(100_000);
    const slowName = writeName(lab, digestOf(bytes));
    const slow = openWrite(lab, { deadlineMs: 30_000 });
    slow.send(first(slowName, bytes.subarray(0, 50_000)));
    equal(await writeWhole(lab, writeName(lab, digestOf(bytes)), bytes), bytes.length);
    slow.send({ ...next(50_000, bytes.subarray(50_000)), finishWrite: true });
    slow.end();
    equal((await slow.answer).committedSize, bytes.length);
    sameBytes(await readAll(lab, readName(lab, digestOf(bytes))), bytes, "Read");
  }),
  at(19, "a writer that has gone away does not hold up another", async (lab) => {
    const bytes = fresh(100_000);
    const gone = new AbortController();
    const slow = openWrite(lab, { signal: gone.signal });
    slow.send(first(writeName(lab, digestOf(bytes)), bytes.subarray(0, 50_000)));
    gone.abort();
    await codeOf(slow.answer);
    slow.end();
    equal(await writeWhole(lab, writeName(lab, digestOf(bytes)), bytes, { deadlineMs: 10_000 }), bytes.length);
  }),
  ...zstdCases(),
  at(21, "a blob that is too large is refused before its bytes", async (lab) => {
    const max = lab.capabilities.cacheCapabilities?.maxCasBlobSizeBytes ?? 0;
    if (max === 0 || max === Number.MAX_SAFE_INTEGER) throw new Skip("needs a server that has a limit");
    const writing = openWrite(lab, { deadlineMs: 10_000 });
    writing.send(first(writeName(lab, { ...digestOf(fresh()), sizeBytes: max + 1 }), new Uint8Array(10)));
    await ends(writing.answer, code.invalid, "Write");
    writing.end();
  }),
  at(21, "a compressor that nobody knows is refused", async (lab) => {
    const name = writeName(lab, digestOf(fresh())).replace("/blobs/", "/compressed-blobs/squeeze/");
    await ends(writeWhole(lab, name, fresh()), [code.invalid, code.unimplemented], "Write");
    const reading = readName(lab, digestOf(fresh())).replace("blobs/", "compressed-blobs/squeeze/");
    await ends(readAll(lab, reading), [code.invalid, code.unimplemented], "Read");
  }),
  at(22, "without room a write is refused, with when to try again; reads go on", async (lab) => {
    const full = needs(lab.full, "a server that has no room");
    const bytes = fresh(1_000);
    await full.clientStream(write, pieces(writeName(lab, digestOf(bytes)), [{ data: bytes, finishWrite: true }]));
    const large = writeName(lab, { ...digestOf(fresh()), sizeBytes: 1024 ** 3 });
    const error = await full
      .clientStream(write, pieces(large, [{ data: fresh(1_000) }]))
      .catch((thrown: unknown) => thrown);
    ok(isGrpcError(error), "it was taken");
    equal(error.code, code.exhausted);
    equal(detailsOf(error, RetryInfo).length, 1, "RetryInfo");
    const request = { resourceName: readName(lab, digestOf(bytes)), readOffset: 0, readLimit: 0 };
    for await (const { data } of full.serverStream(read, request)) sameBytes(data, bytes, "Read");
  }),
];

function zstdCases(): readonly Case[] {
  const skippable = (length: number): Buffer => {
    const frame = Buffer.alloc(8 + length, 0xab);
    frame.writeUInt32LE(0x184d2a50, 0);
    frame.writeUInt32LE(length, 4);
    return frame;
  };
  const write = async (lab: Lab, bytes: Uint8Array, packed: Uint8Array): Promise<void> => {
    needs(hasZstd(lab), "a server of zstd");
    await writeWhole(lab, writeName(lab, digestOf(bytes), { compressed: true, uuid: randomUUID() }), packed);
  };
  const taken: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
    ["many frames", (bytes) => Buffer.concat([0, 1, 2, 3].map((i) => zstd(bytes.subarray(i * 500, (i + 1) * 500))))],
    ["skippable frames", (bytes) => Buffer.concat([skippable(5), zstd(bytes), skippable(0), skippable(300)])],
    ["empty frames", (bytes) => Buffer.concat([zstd(Buffer.alloc(0)), zstd(bytes), zstd(Buffer.alloc(0))])],
  ];
  const refused: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
    ["something behind the last frame", (bytes) => Buffer.concat([zstd(bytes), Buffer.from("garbage")])],
    ["a frame that is cut off", (bytes) => zstd(bytes).subarray(0, -3)],
    ["what is no frame", (bytes) => bytes],
    ["other bytes, well compressed", () => zstd(fresh(2_000))],
    ["a frame that unpacks to far more", () => zstd(Buffer.alloc(200_000_000))],
  ];
  return [
    ...taken.map(([what, pack]) =>
      at(20, `zstd with ${what} is taken`, async (lab) => {
        const bytes = fresh(2_000);
        await write(lab, bytes, pack(bytes));
        sameBytes(await readAll(lab, readName(lab, digestOf(bytes))), bytes, "Read");
      }),
    ),
    ...refused.map(([what, pack]) =>
      at(20, `zstd with ${what} is refused`, async (lab) => {
        const bytes = fresh(2_000);
        await ends(write(lab, bytes, pack(bytes)), code.invalid, "Write");
        await until("it is not there", async () => !(await isThere(lab, digestOf(bytes))));
      }),
    ),
  ];
}
