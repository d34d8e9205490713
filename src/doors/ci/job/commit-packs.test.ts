import { deepEqual, equal, rejects } from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { CommitPacks } from "./commit-packs.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-commit-packs-"));
after(() => clearAway(folder));
const mirror = join(folder, "mirror");
const git = (at: string, ...args: readonly string[]): string =>
  execFileSync("git", ["-C", at, "-c", "user.name=ann", "-c", "user.email=ann@example.invalid", ...args], {
    encoding: "utf8",
  }).trim();
git(folder, "init", "--quiet", "--initial-branch=main", mirror);
git(mirror, "config", "uploadpack.allowAnySHA1InWant", "true");
const commit = (text: string): string => {
  writeFileSync(join(mirror, "a.txt"), text);
  git(mirror, "add", "-A");
  git(mirror, "commit", "--quiet", "-m", text);
  return git(mirror, "rev-parse", "HEAD");
};
const shas = ["one", "two", "three"].map((text) => commit(text));
const [one = "", two = "", three = ""] = shas;
const kept = join(folder, "packs");
let jobs = 0;
const checkedOut = async (packs: CommitPacks, sha: string): Promise<string> => {
  const job = join(folder, `job-${(jobs += 1)}`);
  mkdirSync(job);
  await packs.bring(mirror, sha, join(job, ".git"));
  git(job, "checkout", "--quiet", "--detach", sha);
  equal(git(job, "status", "--porcelain"), "");
  return execFileSync("cat", [join(job, "a.txt")], { encoding: "utf8" });
};

test("each job gets a copy of its commit, which git makes once, also for jobs that start at once", async () => {
  const packs = new CommitPacks(kept);
  deepEqual(await Promise.all([one, one, one, two].map((sha) => checkedOut(packs, sha))), ["one", "one", "one", "two"]);
  equal(readdirSync(kept).length, 2);
  await rejects(packs.bring(mirror, "0".repeat(40), join(folder, "none")));
  equal(existsSync(join(folder, "none")), false);
});

test("no more is kept than may be, and nothing of an earlier process", async () => {
  const packs = new CommitPacks(kept, 1);
  for (const sha of [three, one, three]) await checkedOut(packs, sha);
  equal(readdirSync(kept).length, 0);
});
