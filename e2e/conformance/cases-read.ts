/** Items 23 to 28: ByteStream.Read. */
import { equal, ok } from "node:assert/strict";
import { at, needs, type Case } from "./case.ts";
import {
  code,
  digestOf,
  ends,
  fresh,
  freshText,
  hasZstd,
  read,
  readAll,
  readName,
  sameBytes,
  unzstd,
  upload,
  writeName,
  writePieces,
  writeWhole,
  zstd,
} from "./lab.ts";

const MiB = 1024 * 1024;

export const readCases: readonly Case[] = [
  ...(
    [
      [0, 0, 0, 1_000],
      [10, 0, 10, 1_000],
      [10, 20, 10, 30],
      [990, 500, 990, 1_000],
      [0, 1_000, 0, 1_000],
      [0, 5_000, 0, 1_000],
      [1_000, 0, 1_000, 1_000],
      [1_000, 7, 1_000, 1_000],
    ] as const
  ).map(([offset, limit, start, end]) =>
    at(23, `from ${offset}, ${limit === 0 ? "all" : `at most ${limit}`}: bytes ${start} to ${end}`, async (lab) => {
      const bytes = fresh(1_000);
      await upload(lab, bytes);
      const got = await readAll(lab, readName(lab, digestOf(bytes)), { offset, limit });
      sameBytes(got, bytes.subarray(start, end), "Read");
    }),
  ),
  ...([-1, 1_001] as const).map((offset) =>
    at(23, `an offset of ${offset} in 1000 bytes is out of range`, async (lab) => {
      const name = readName(lab, await upload(lab, fresh(1_000)));
      await ends(readAll(lab, name, { offset }), code.outOfRange, "Read");
    }),
  ),
  at(23, "a negative limit is refused", async (lab) => {
    const name = readName(lab, await upload(lab, fresh(1_000)));
    await ends(readAll(lab, name, { limit: -1 }), [code.invalid, code.outOfRange], "Read");
  }),
  at(24, "a limit on compressed bytes is refused", async (lab) => {
    needs(hasZstd(lab), "a server of zstd");
    const digest = await upload(lab, freshText(5_000));
    await ends(readAll(lab, readName(lab, digest, { compressed: true }), { limit: 10 }), code.invalid, "Read");
  }),
  at(24, "an offset into compressed bytes counts plain ones", async (lab) => {
    needs(hasZstd(lab), "a server of zstd");
    const bytes = Buffer.concat([fresh(70_000), freshText(70_000)]);
    const name = readName(lab, await upload(lab, bytes), { compressed: true });
    for (const offset of [0, 1, 65_536, 99_999])
      sameBytes(unzstd(await readAll(lab, name, { offset })), bytes.subarray(offset), `from ${offset}`);
    const last = await readAll(lab, name, { offset: bytes.length });
    equal(last.length === 0 ? 0 : unzstd(last).length, 0, "from the very end");
    await ends(readAll(lab, name, { offset: bytes.length + 1 }), code.outOfRange, "beyond the end");
  }),
  at(25, "what came plain is read compressed, and the other way round", async (lab) => {
    needs(hasZstd(lab), "a server of zstd");
    for (const length of [20, 10_000, 3 * MiB]) {
      const [plain, packed] = [freshText(length), freshText(length)];
      await upload(lab, plain);
      await writeWhole(lab, writeName(lab, digestOf(packed), { compressed: true }), zstd(packed));
      for (const bytes of [plain, packed]) {
        sameBytes(await readAll(lab, readName(lab, digestOf(bytes))), bytes, `${length} plain`);
        const got = await readAll(lab, readName(lab, digestOf(bytes), { compressed: true }));
        sameBytes(unzstd(got), bytes, `${length} compressed`);
      }
      const part = await readAll(lab, readName(lab, digestOf(packed)), { offset: 7, limit: 9 });
      sameBytes(part, packed.subarray(7, 16), "a part of what came compressed");
    }
  }),
  at(26, "what is not there is not found, before the first message", async (lab) => {
    await ends(readAll(lab, readName(lab, digestOf(fresh()))), code.notFound, "Read");
    await ends(readAll(lab, readName(lab, digestOf(fresh())), { offset: 100 }), code.notFound, "Read of the very end");
    needs(hasZstd(lab), "a server of zstd");
    await ends(readAll(lab, readName(lab, digestOf(fresh()), { compressed: true })), code.notFound, "compressed");
  }),
  at(27, "messages fit into 4 MiB, and a large blob comes whole", async (lab) => {
    const bytes = fresh(9 * MiB + 1);
    const resourceName = readName(lab, await upload(lab, bytes.subarray(0, 3 * MiB)));
    sameBytes(await readAll(lab, resourceName), bytes.subarray(0, 3 * MiB), "3 MiB");
    const name = writeName(lab, digestOf(bytes));
    const parts = [0, 1, 2, 3, 4].map((i) => bytes.subarray(i * 2 * MiB, (i + 1) * 2 * MiB));
    await writePieces(
      lab,
      name,
      parts.map((data, i) => ({ data, finishWrite: i === parts.length - 1 })),
    );
    const got: Uint8Array[] = [];
    const request = { resourceName: readName(lab, digestOf(bytes)), readOffset: 0, readLimit: 0 };
    for await (const { data } of lab.client.serverStream(read, request)) {
      ok(data.length <= 4 * MiB - 16, `a message of ${data.length} bytes`);
      got.push(data);
    }
    sameBytes(Buffer.concat(got), bytes, "9 MiB");
  }),
  at(27, "whoever stops reading does not disturb others", async (lab) => {
    const bytes = fresh(3 * MiB);
    const resourceName = readName(lab, await upload(lab, bytes));
    for (let i = 0; i < 20; i += 1)
      for await (const { data } of lab.client.serverStream(read, { resourceName, readOffset: 0, readLimit: 0 }))
        if (data.length >= 0) break;
    sameBytes(await readAll(lab, resourceName), bytes, "Read");
  }),
  at(28, "a large blob begins to come at once", async (lab) => {
    const resourceName = readName(lab, await upload(lab, fresh(3 * MiB)));
    const begun = performance.now();
    for await (const { data } of lab.client.serverStream(read, { resourceName, readOffset: 0, readLimit: 0 }))
      if (data.length > 0) break;
    ok(performance.now() - begun < 5_000, "not within 5 s");
  }),
];
