import { deepEqual, equal, throws } from "node:assert/strict";
import { test } from "node:test";
import { crc32, deflateRawSync } from "node:zlib";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { Store } from "#blobs/store.ts";
import type { SealedArtifact } from "#doors/ci/services/artifacts/artifacts.ts";
import { isOfReports, takeReports } from "./artifact-reports.ts";
import { zipEntries } from "./zip.ts";

/** As `zip` writes it: local headers, the directory, its end. */
function zipOf(files: Readonly<Record<string, string>>, method: 0 | 8): Buffer {
  const [bodies, directory]: [Buffer[], Buffer[]] = [[], []];
  let offset = 0;
  for (const [path, text] of Object.entries(files)) {
    const [name, plain] = [Buffer.from(path), Buffer.from(text)];
    const packed = method === 8 ? deflateRawSync(plain) : plain;
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04_03_4b_50, 0);
    local.writeUInt16LE(method, 8);
    local.writeUInt32LE(crc32(plain), 14);
    local.writeUInt32LE(packed.length, 18);
    local.writeUInt32LE(plain.length, 22);
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02_01_4b_50, 0);
    entry.writeUInt16LE(method, 10);
    local.copy(entry, 16, 14, 28);
    entry.writeUInt32LE(offset, 42);
    bodies.push(local, name, packed);
    directory.push(entry, name);
    offset += 30 + name.length + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06_05_4b_50, 0);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...bodies, ...directory, end]);
}

const suite = "<testsuite name='mill'><testcase name='grinds'/></testsuite>";

async function taken(name: string, bytes: Buffer, mimeType = "application/zip"): Promise<readonly string[]> {
  const blobs = createMemoryBlobs({ clock: new ManualClock(0), sizeBytesMax: 1_000_000 });
  const digest = digestOf(bytes);
  await blobs.write(digest, bytes);
  const names: string[] = [];
  const content = { sizeBytes: bytes.length, parts: [digest] };
  await takeReports(
    {
      store: { forTenant: () => ({ blobs }) } as unknown as Store,
      reports: { add: async (_job, { name: of }) => await Promise.resolve(names.push(of) as never) },
      report: (error) => names.push(`error: ${String(error)}`),
    },
    { tenant: "t", run: "j0-1", task: "t0-1" },
    { name, mimeType, sealed: { sha256: "", content } } as unknown as SealedArtifact,
  );
  return names;
}

test("reports are taken from artifacts that are called so, packed or not", async () => {
  const files = { "build/one.xml": suite, "two.XML": suite, "log.txt": "<testsuite/>" };
  for (const method of [0, 8] as const)
    deepEqual(await taken("test-results", zipOf(files, method)), [
      "test-results.build.one.xml",
      "test-results.two.XML",
    ]);
  deepEqual(await taken("junit.xml", Buffer.from(suite), "text/xml"), ["junit.xml.xml"]);
  deepEqual(await taken("coverage", zipOf(files, 8)), []);
  deepEqual(await taken("junit", Buffer.from("no archive at all, but long enough for an end")), []);
});

test("names that say so", () => {
  for (const name of ["junit", "JUnit-linux", "test-results", "my_test_reports", "tests.report"])
    equal(isOfReports(name), true, name);
  for (const name of ["latest-results", "coverage", "junitive", "contest-results"])
    equal(isOfReports(name), false, name);
});

test("what a hostile archive says is not believed", async () => {
  const [entry] = zipEntries(zipOf({ a: "x".repeat(100_000) }, 8), 10);
  equal(await entry?.read(99_999), undefined);
  equal((await entry?.read(100_000))?.length, 100_000);
  throws(
    () => zipEntries(zipOf(Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`${i}`, ""])), 0), 10),
    /10 entries/,
  );
  const good = zipOf({ a: "abc", b: "def" }, 8);
  for (let at = 0; at < good.length; at += 1)
    for (const value of [0, 0xff]) {
      const bad = Buffer.from(good);
      bad[at] = value;
      try {
        for (const one of zipEntries(bad, 10)) equal(((await one.read(1_000))?.length ?? 0) <= 1_000, true);
      } catch (error) {
        equal(String(error).includes("zip archive") || error instanceof RangeError, true, String(error));
      }
    }
});
