import { deepEqual, rejects } from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { collect, makeRoom, stagedOf } from "./versions.ts";

const digest = (digit: string): string => `${digit.repeat(64)}/100`;
const name = (digit: string): string => `sha256-${digit.repeat(64)}`;
const keep = { countMax: 2, bytesMax: 3_000, inUse: [digest("a")] };

describe("versions on a machine's disk", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "versions-"));
    // a is the oldest; each has 1,000 bytes.
    for (const [index, digit] of ["a", "b", "c"].entries()) {
      mkdirSync(join(folder, name(digit)));
      writeFileSync(join(folder, name(digit), "file"), Buffer.alloc(1_000));
      writeFileSync(join(folder, `${name(digit)}.json`), "{}");
      utimesSync(join(folder, name(digit)), index, index);
    }
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const there = (): readonly string[] => readdirSync(folder).map((each) => each.slice("sha256-".length)[0] ?? "");

  test("DEPLOY-13: the oldest go, and never one that is in use", async () => {
    await collect(folder, { ...keep, countMax: 1 });
    deepEqual(new Set(there()), new Set(["a", "c"]));
  });

  test("DEPLOY-13: what is being staged stays, and what is no longer wanted of it goes", async () => {
    mkdirSync(join(folder, `${name("d")}.staging`));
    mkdirSync(join(folder, `${name("e")}.staging`));
    await collect(folder, { ...keep, inUse: [digest("a"), digest("d")], countMax: 3 });
    deepEqual(new Set(there()), new Set(["a", "b", "c", "d"]));
  });

  test("DEPLOY-14: a quota makes room by the oldest that nothing needs", async () => {
    await makeRoom(folder, 900, keep);
    deepEqual(new Set(there()), new Set(["a", "c"]));
  });

  test("DEPLOY-14: and refuses what does not fit beside those in use, by its name", async () => {
    await rejects(makeRoom(folder, 2_500, keep), { code: "exhausted", message: /quota/i });
    deepEqual(new Set(there()), new Set(["a"]));
  });

  test("a version counts as staged only under its final name", async () => {
    mkdirSync(join(folder, `${name("d")}.staging`));
    deepEqual(await stagedOf(folder, [digest("a"), digest("d")]), new Set([digest("a")]));
  });
});
