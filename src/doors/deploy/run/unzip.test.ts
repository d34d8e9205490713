import { equal, rejects } from "node:assert/strict";
import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { clearAway } from "#testing/clear-away.ts";
import { unzip } from "./unzip.ts";

type Given = { readonly path: string; readonly text: string; readonly mode?: number };

/** A zip archive as others write it; CRCs are left out, since segments have digests of their own. */
function zipOf(entries: readonly Given[]): Buffer {
  const [files, directory]: [Buffer[], Buffer[]] = [[], []];
  let offset = 0;
  for (const { path, text, mode = 0o100_644 } of entries) {
    const [name, packed] = [Buffer.from(path), deflateRawSync(text)];
    const local = Buffer.alloc(30);
    local.write("PK\u0003\u0004", "latin1");
    local.writeUInt16LE(8, 8);
    local.writeUInt16LE(name.length, 26);
    const central = Buffer.alloc(46);
    central.write("PK\u0001\u0002", "latin1");
    central.writeUInt16LE(8, 10);
    central.writeUInt32LE(packed.length, 20);
    central.writeUInt32LE(text.length, 24);
    central.writeUInt16LE(name.length, 28);
    central.writeUInt32LE((mode << 16) >>> 0, 38);
    central.writeUInt32LE(offset, 42);
    files.push(local, name, packed);
    directory.push(central, name);
    offset += 30 + name.length + packed.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", "latin1");
  end.writeUInt32LE(list.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...files, list, end]);
}

describe("an artifact", () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-unzip-"));
  after(() => clearAway(folder));
  let count = 0;
  const unpacked = async (archive: Buffer, limits = { entriesMax: 10, bytesMax: 1_000 }): Promise<string> => {
    const to = mkdtempSync(join(folder, "to-"));
    const path = join(folder, `${(count += 1)}.zip`);
    writeFileSync(path, archive);
    await unzip(path, to, limits);
    return to;
  };

  test("is unpacked with its folders and what is executable", async () => {
    const to = await unpacked(
      zipOf([
        { path: "a.txt", text: "flour" },
        { path: "bin/run", text: "go", mode: 0o100_755 },
      ]),
    );
    equal(readFileSync(join(to, "a.txt"), "utf8"), "flour");
    equal(statSync(join(to, "bin/run")).mode & 0o111, 0o111);
  });
  const refused: readonly [string, Buffer, RegExp][] = [
    ["UZ1: a path that leaves the folder", zipOf([{ path: "../x", text: "" }]), /leaves the folder/],
    ["UZ1: an absolute path", zipOf([{ path: "/etc/x", text: "" }]), /leaves the folder/],
    ["UZ1: a link", zipOf([{ path: "x", text: "/etc/passwd", mode: 0o120_777 }]), /is a link/],
    ["UZ2: more bytes than it may", zipOf([{ path: "x", text: "0".repeat(2_000) }]), /more than it may/],
    [
      "UZ2: too many entries",
      zipOf(Array.from({ length: 11 }, (_, i) => ({ path: `f${i}`, text: "" }))),
      /more than 10/,
    ],
    ["an archive that is cut off", zipOf([{ path: "a", text: "b" }]).subarray(0, 40), /no directory/],
    [
      "two entries with one path",
      zipOf([
        { path: "a", text: "b" },
        { path: "a", text: "c" },
      ]),
      /two entries have the path a/,
    ],
  ];
  for (const [name, archive, why] of refused) test(`${name} is refused`, async () => rejects(unpacked(archive), why));
});
