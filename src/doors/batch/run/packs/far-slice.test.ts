/** Packs as the engine writes them, of which a task wants some rows and fetches no more. */
import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { openOracle } from "#doors/batch/testing/oracle.ts";
import { fetchSlice } from "./far-slice.ts";
import { sliceFooter, type WantedRows } from "./footer.ts";

const folder = await mkdtemp(join(tmpdir(), "millrace-packs-"));
after(() => rm(folder, { recursive: true, force: true }));
const oracle = await openOracle();
const rows = 400_000;

async function packOf(name: string, last: string) {
  const path = join(folder, name);
  const columns = `range as c0, md5(range::varchar) as c1, ${last}`;
  const by = last.split(" as ").at(-1) ?? "";
  await oracle.run(
    `copy (select ${columns} from range(${rows}) order by ${by}) to '${path}' (format parquet, compression lz4_raw, row_group_size 16384)`,
  );
  const bytes = await readFile(path);
  const asked: number[] = [];
  const part: BlobStore["part"] = async (_digest, { offset, length }) => {
    asked.push(length);
    return new Uint8Array(bytes.subarray(offset, offset + length));
  };
  return { path, bytes, asked, part, digest: sha256Digest(bytes) };
}

const partitions = await packOf("p.parquet", "cast(hash(range) % 64 as UINTEGER) as p");
const sorted = await packOf("k.parquet", "encode(lpad(range::varchar, 8, '0')) as k");

const one = async (sql: string): Promise<unknown> => (await oracle.runAndReadAll(sql)).getRows();
const sums = "count(*)::int, sum(c0)::varchar, min(c1), max(c1)";

async function slice(pack: typeof partitions, wanted: WantedRows) {
  pack.asked.length = 0;
  const to = join(folder, "slice.parquet");
  const isThere = await fetchSlice(pack.digest, wanted, to, pack);
  return { to, isThere, fetched: pack.asked.reduce((sum, length) => sum + length, 0) };
}

describe("a task that wants some rows of a pack that is far", () => {
  for (const [from, to] of [
    [0, 1],
    [17, 20],
    [63, 64],
  ] as const)
    test(`fetches partitions ${from} to ${to - 1} and the footer`, async () => {
      const got = await slice(partitions, { column: "p", from, to });
      ok(got.isThere);
      ok(got.fetched < partitions.bytes.length / 3, `${got.fetched} of ${partitions.bytes.length}`);
      const where = `where p >= ${from} and p < ${to}`;
      deepEqual(
        await one(`select ${sums} from '${got.to}' ${where}`),
        await one(`select ${sums} from '${partitions.path}' ${where}`),
      );
    });

  test("fetches a range of sorted keys", async () => {
    const key = (at: number): Buffer => Buffer.from(String(at).padStart(8, "0"));
    for (const [from, to] of [
      [undefined, 30_000],
      [100_000, 130_000],
      [390_000, undefined],
    ] as const) {
      const ends = { ...(from !== undefined && { from: key(from) }), ...(to !== undefined && { to: key(to) }) };
      const got = await slice(sorted, { column: "k", ...ends });
      ok(got.isThere);
      ok(got.fetched < sorted.bytes.length / 2, `${got.fetched} of ${sorted.bytes.length}`);
      const where = `where c0 >= ${from ?? 0} and c0 < ${to ?? rows}`;
      deepEqual(
        await one(`select ${sums} from '${got.to}' ${where}`),
        await one(`select ${sums} from '${sorted.path}' ${where}`),
      );
    }
  });

  test("gets a file without rows where the pack has none of them", async () => {
    const got = await slice(partitions, { column: "p", from: 64, to: 70 });
    ok(got.isThere);
    deepEqual(await one(`select count(*)::int, count(c1)::int from '${got.to}'`), [[0, 0]]);
  });

  test("reads all of it where it wants most, and where the store or the footer has no parts", async () => {
    const most: WantedRows = { column: "p", from: 0, to: 60 };
    equal((await slice(partitions, most)).isThere, false);
    equal((await slice(partitions, { column: "k" })).isThere, false);
    equal(await fetchSlice(partitions.digest, { column: "p", from: 0, to: 1 }, join(folder, "none"), {}), false);
    const gone = async (): Promise<undefined> => undefined;
    equal(
      await fetchSlice(partitions.digest, { column: "p", from: 0, to: 1 }, join(folder, "none"), { part: gone }),
      false,
    );
  });

  test("takes no footer for another: whatever its bytes, there is a slice, or none, or a Fault", () => {
    const random = new Random("footers");
    const { bytes } = partitions;
    const length = bytes.readUInt32LE(bytes.length - 8);
    const footer = bytes.subarray(bytes.length - 8 - length, bytes.length - 8);
    for (let i = 0; i < 300; i += 1) {
      const bad = Buffer.from(footer.subarray(0, random.chance(0.3) ? random.below(footer.length) : footer.length));
      for (let n = 0; n < 4 && bad.length > 0; n += 1) bad[random.below(bad.length)] = random.below(256);
      try {
        sliceFooter(bad, { column: "p", from: 3, to: 4 });
      } catch (error) {
        ok(isFault(error, "corrupt"), String(error));
      }
    }
    throws(() => sliceFooter(Buffer.alloc(0), { column: "p", from: 0, to: 1 }), /ends too early/);
  });
});
