import { equal } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { headIn, looseRef } from "./loose-refs.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-loose-refs-"));
after(() => clearAway(folder));
const git = (...args: readonly string[]): string =>
  execFileSync("git", ["-C", folder, "-c", "user.name=ann", "-c", "user.email=ann@example.invalid", ...args], {
    encoding: "utf8",
  }).trim();

test("refs in files of their own are read without git; packed ones, and names that lead elsewhere, are not", async () => {
  git("init", "--quiet", "--bare", "--initial-branch=trunk");
  equal(await headIn(folder), "refs/heads/trunk");
  equal(await looseRef(folder, "refs/heads/trunk"), undefined);
  const tree = git("hash-object", "-t", "tree", "-w", "/dev/null");
  const commit = git("commit-tree", "-m", "one", tree);
  git("update-ref", "refs/heads/trunk", commit);
  equal(await looseRef(folder, "refs/heads/trunk"), commit);
  equal(await looseRef(folder, "refs/heads/../heads/trunk"), undefined);
  git("pack-refs", "--all");
  equal(await looseRef(folder, "refs/heads/trunk"), undefined);
  git("symbolic-ref", "HEAD", "refs/heads/other");
  equal(await headIn(folder), "refs/heads/other");
  git("update-ref", "--no-deref", "HEAD", commit);
  equal(await headIn(folder), undefined);
});
