import { deepEqual, equal, ok } from "node:assert/strict";
import { linkSync, mkdirSync, mkdtempSync, rmSync, statfsSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fillerAmong, freeBytes, ownWeight, shortOf } from "./disk-guard.ts";

test("what a run has made is counted, in bytes and files; links to what others have are not", () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-guard-"));
  try {
    const input = join(folder, "input");
    writeFileSync(input, Buffer.alloc(100_000));
    const run = join(folder, "run");
    mkdirSync(join(run, "root/deep"), { recursive: true });
    linkSync(input, join(run, "root/input"));
    deepEqual({ ...ownWeight(run), bytes: 0 }, { files: 2, bytes: 0 }, "two folders");
    const before = ownWeight(run).bytes;
    writeFileSync(join(run, "root/deep/made"), Buffer.alloc(50_000));
    symlinkSync("/etc", join(run, "root/etc"));
    const { bytes, files } = ownWeight(run);
    equal(files, 4, "a link is one, and what is behind it is not looked at");
    ok(bytes - before >= 50_000 && bytes - before < 90_000, `${bytes - before}`);
    equal(
      fillerAmong([run], (path) => path),
      undefined,
      "too little to matter",
    );
    deepEqual(ownWeight(join(folder, "missing")), { bytes: 0, files: 0 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a disk is short of bytes below what is to be left, or of files where it counts them", () => {
  equal(shortOf(tmpdir(), freeBytes(tmpdir()) + 1e12), "bytes");
  const { files, ffree } = statfsSync(tmpdir());
  const isShort = files > 0 && ffree < Math.min(10_000, files / 20);
  equal(shortOf(tmpdir(), 0), isShort ? "files" : undefined);
});
