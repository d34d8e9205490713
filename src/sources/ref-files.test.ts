import { equal } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { gitFolderOf, headIn, refIn } from "./ref-files.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-loose-refs-"));
after(() => clearAway(folder));
const git = (...args: readonly string[]): string =>
  execFileSync("git", ["-C", folder, "-c", "user.name=ann", "-c", "user.email=ann@example.invalid", ...args], {
    encoding: "utf8",
  }).trim();

test("refs are read without git, packed or not; names that lead elsewhere are not", async () => {
  git("init", "--quiet", "--bare", "--initial-branch=trunk");
  equal(await headIn(folder), "refs/heads/trunk");
  equal(await refIn(folder, "refs/heads/trunk"), undefined);
  const tree = git("hash-object", "-t", "tree", "-w", "/dev/null");
  const commit = git("commit-tree", "-m", "one", tree);
  git("update-ref", "refs/heads/trunk", commit);
  equal(await refIn(folder, "refs/heads/trunk"), commit);
  equal(await refIn(folder, "refs/heads/../heads/trunk"), undefined);
  git("pack-refs", "--all");
  equal(existsSync(join(folder, "refs/heads/trunk")), false);
  equal(await refIn(folder, "refs/heads/trunk"), commit);
  equal(await refIn(folder, "refs/heads/run"), undefined);
  git("symbolic-ref", "HEAD", "refs/heads/other");
  equal(await headIn(folder), "refs/heads/other");
  git("update-ref", "--no-deref", "HEAD", commit);
  equal(await headIn(folder), undefined);
  equal(await gitFolderOf(folder), folder);
  equal(await gitFolderOf(`file://${folder}`), folder);
  equal(await gitFolderOf(join(folder, "refs")), undefined);
  equal(await gitFolderOf("https://example.invalid/a.git"), undefined);
});
