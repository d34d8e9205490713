import { randomBytes } from "node:crypto";
import { deepEqual, equal, ok, throws } from "node:assert/strict";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import fc from "fast-check";
import { packDelta } from "./pack.ts";
import { sealText } from "./sealed-file.ts";
import { unpackDeltas } from "./unpack.ts";
import { TreeMemory } from "./walk.ts";

const tops = ["work", "home"];
const key = randomBytes(32);
const limits = { partBytes: 64, bytesMax: 1 << 20 };
const far = Date.now() + 60_000; // no time of a file is near this one, so that nothing counts as just changed

const made: string[] = [];
after(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

function fresh(): string {
  const folder = mkdtempSync(join(tmpdir(), "resume-"));
  made.push(folder);
  return folder;
}

function job() {
  const root = fresh();
  for (const top of tops) mkdirSync(join(root, top));
  const memory = new TreeMemory(root, tops);
  const packs = fresh();
  const deltas: string[] = [];
  return {
    at: (path: string) => join(root, path),
    memory,
    keep(nowMs = far) {
      const folder = join(packs, String(deltas.length));
      deltas.push(folder);
      return packDelta(root, memory.look(nowMs), { folder, key, limits });
    },
    restored() {
      const again = fresh();
      unpackDeltas(again, tops, { folders: deltas, key, partBytes: limits.partBytes });
      return again;
    },
    root,
    deltas,
  };
}

/** Everything that a restored tree must have in common with the first. */
function listing(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, encoding: "latin1" })
    .toSorted()
    .map((name) => {
      const path = Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")]);
      const stats = lstatSync(path);
      const mode = (stats.mode & 0o7777).toString(8);
      if (stats.isSymbolicLink()) return `${name} -> ${readlinkSync(path, { encoding: "latin1" })}`;
      if (stats.isDirectory()) return `${name}/ ${mode}`;
      return `${name} ${mode} ${Math.round(stats.mtimeMs)} ${readFileSync(path).toString("latin1")}`;
    });
}

describe("a job's files", () => {
  test("come back as they were, with modes, times, links and names that are not UTF-8", () => {
    const one = job();
    mkdirSync(one.at("work/deep/er"), { recursive: true });
    writeFileSync(one.at("work/deep/er/script"), "#!/bin/sh\n", { mode: 0o755 });
    writeFileSync(one.at("work/empty"), "");
    writeFileSync(one.at("work/large"), "x".repeat(1_000));
    writeFileSync(Buffer.concat([Buffer.from(one.at("work/")), Buffer.from([0x66, 0xff, 0xfe])]), "odd");
    symlinkSync("../nowhere", one.at("home/link"));
    utimesSync(one.at("work/empty"), 1_000_000, 1_000_000);
    chmodSync(one.at("work/deep"), 0o500);
    one.keep();
    const again = one.restored();
    deepEqual(listing(again), listing(one.root));
    equal(lstatSync(join(again, "work/empty")).mtimeMs, 1_000_000_000);
    for (const root of [one.root, again]) chmodSync(join(root, "work/deep"), 0o700);
  });

  test("cost nothing while they are unchanged", () => {
    const one = job();
    writeFileSync(one.at("work/a"), "a");
    equal(one.keep().entries, 3);
    deepEqual(one.keep(), { parts: 0, bytes: 0, entries: 0 });
    writeFileSync(one.at("work/b"), "bb");
    deepEqual(one.keep(), { parts: 1, bytes: 2, entries: 1 });
    deepEqual(listing(one.restored()), listing(one.root));
  });

  test("are read again if they changed too shortly before the last look to be sure", () => {
    const one = job();
    writeFileSync(one.at("work/a"), "a");
    one.keep(Date.now());
    equal(one.keep(far).bytes, 1, "its time was too young");
    equal(one.keep(far).bytes, 0);
  });

  test("that were removed, renamed, or changed their kind are not there again", () => {
    const one = job();
    mkdirSync(one.at("work/folder"));
    writeFileSync(one.at("work/folder/in"), "in");
    writeFileSync(one.at("work/file"), "file");
    one.keep();
    rmSync(one.at("work/folder"), { recursive: true });
    writeFileSync(one.at("work/folder"), "now a file");
    renameSync(one.at("work/file"), one.at("home/moved"));
    mkdirSync(one.at("work/file"));
    one.keep();
    deepEqual(listing(one.restored()), listing(one.root));
  });

  test("of more entries, levels or bytes than allowed are refused", () => {
    const one = job();
    for (let i = 0; i < 5; i += 1) writeFileSync(one.at(`work/${i}`), "x");
    throws(() => new TreeMemory(one.root, tops, { entriesMax: 4, depthMax: 9 }).look(far), /entriesMax 4|exhausted/);
    mkdirSync(one.at("work/a/b/c/d"), { recursive: true });
    throws(() => new TreeMemory(one.root, tops, { entriesMax: 99, depthMax: 3 }).look(far), /exhausted/);
    const delta = new TreeMemory(one.root, tops).look(far);
    throws(
      () => packDelta(one.root, delta, { folder: join(fresh(), "0"), key, limits: { partBytes: 4, bytesMax: 4 } }),
      /exhausted/,
    );
  });

  test("are not written outside of the job's folders by a damaged manifest", () => {
    for (const path of ["work/../../escape", "/etc/escape", "other/file", "work//x"]) {
      const folder = fresh();
      sealText(join(folder, "manifest"), JSON.stringify({ kind: "folder", path, mode: 0o755, mtimeMs: 0 }), key);
      throws(() => unpackDeltas(fresh(), tops, { folders: [folder], key }), /corrupt/, path);
    }
  });

  test("are sealed: no byte of them can be read in the parts, and a changed part is refused", () => {
    const one = job();
    writeFileSync(one.at("work/token"), "a-very-secret-token");
    one.keep();
    const [folder = ""] = one.deltas;
    const files = readdirSync(folder);
    deepEqual(files.toSorted(), ["manifest", "part-0"]);
    for (const file of files) ok(!/secret|token/.test(readFileSync(join(folder, file), "latin1")), file);
    const part = join(folder, "part-0");
    const bytes = readFileSync(part);
    bytes[14] = (bytes[14] ?? 0) ^ 1;
    writeFileSync(part, bytes);
    throws(() => one.restored(), /corrupt/);
  });

  test("come back after any changes", () => {
    const path = fc.constantFrom("work/a", "work/b", "work/a/c", "home/d", "work/b/e");
    const change = fc.record({
      does: fc.constantFrom("file", "folder", "link", "remove"),
      path,
      text: fc.string({ maxLength: 100 }),
    });
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 6 }), { minLength: 1, maxLength: 5 }), (rounds) => {
        const one = job();
        for (const round of rounds) {
          for (const { does, path: name, text } of round) apply(one.at(name), does, text);
          one.keep();
        }
        deepEqual(listing(one.restored()), listing(one.root));
      }),
      { numRuns: 40 },
    );
    ok(made.length > 40);
  });
});

function apply(path: string, does: string, text: string): void {
  const isParentFolder = lstatSync(join(path, ".."), { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isParentFolder) return;
  rmSync(path, { recursive: true, force: true });
  if (does === "file") writeFileSync(path, text);
  if (does === "folder") mkdirSync(path);
  if (does === "link") symlinkSync(`to-${text.length}`, path);
}
