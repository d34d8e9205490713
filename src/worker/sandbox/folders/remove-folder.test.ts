/** Folders that another user could write to, with anything in them, and with changes while they are deleted. */
import { deepEqual, equal } from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { rigHome } from "#worker/process/testing/rig.ts";
import { emptyFolder, removeFolder } from "./remove-folder.ts";

const skip = process.platform === "linux" ? false : "needs linux: folders by their descriptors";

class Rig implements Disposable {
  readonly home = rigHome();
  readonly folder = join(this.home, "folder");
  readonly outside = join(this.home, "outside");

  constructor() {
    mkdirSync(this.folder);
    mkdirSync(this.outside);
    writeFileSync(join(this.outside, "precious"), "");
  }

  make(...paths: readonly string[]): void {
    for (const path of paths)
      if (path.endsWith("/")) mkdirSync(join(this.folder, path), { recursive: true });
      else writeFileSync(join(this.folder, path), "");
  }

  get isOutsideWhole(): boolean {
    return existsSync(join(this.outside, "precious"));
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}

test("everything in it is deleted, or it as well; a missing one counts as deleted", async () => {
  using rig = new Rig();
  rig.make("a/b/", "a/b/f", "g");
  writeFileSync(Buffer.concat([Buffer.from(`${rig.folder}/`), Buffer.from([0xff, 0xfe])]), "");
  await emptyFolder(rig.folder);
  deepEqual(readdirSync(rig.folder), []);
  rig.make("a/b/");
  await removeFolder(rig.folder);
  equal(existsSync(rig.folder), false);
  await removeFolder(rig.folder);
  await emptyFolder(rig.folder);
});

test("links are not followed", async () => {
  using rig = new Rig();
  rig.make("a/");
  for (const at of ["link", "a/link"]) symlinkSync(rig.outside, join(rig.folder, at));
  await removeFolder(rig.folder);
  equal(existsSync(rig.folder), false);
  equal(rig.isOutsideWhole, true);
});

test("unreadable folders are made readable", async () => {
  using rig = new Rig();
  rig.make("a/b/", "a/b/f");
  for (const path of ["a/b", "a"]) chmodSync(join(rig.folder, path), 0);
  await removeFolder(rig.folder);
  equal(existsSync(rig.folder), false);
});

test("a folder that is replaced by a link meanwhile is not followed", { skip }, async () => {
  using rig = new Rig();
  rig.make("a/", "b/", "c/");
  const removed = removeFolder(rig.folder); // has listed all of them, and waits for the first to be deleted
  for (const name of readdirSync(rig.folder).slice(-1)) {
    renameSync(join(rig.folder, name), join(rig.home, name));
    symlinkSync(rig.outside, join(rig.folder, name));
  }
  await removed.catch(() => {});
  equal(rig.isOutsideWhole, true);
});

test("a parent folder that is replaced by a link meanwhile is not followed", { skip }, async () => {
  using rig = new Rig();
  rig.make("a/b/", "a/c/", "a/d/");
  const [, ...later] = readdirSync(join(rig.folder, "a"));
  for (const name of later) mkdirSync(join(rig.outside, name));
  for (const name of later) writeFileSync(join(rig.outside, name, "precious"), "");
  const removed = emptyFolder(rig.folder);
  renameSync(join(rig.folder, "a"), join(rig.home, "moved"));
  symlinkSync(rig.outside, join(rig.folder, "a"));
  await removed.catch(() => {});
  for (const name of later) equal(existsSync(join(rig.outside, name, "precious")), true);
});

test("deeply nested folders, further than any path reaches", { skip }, async () => {
  using rig = new Rig();
  const levels = 1_000;
  const home = process.cwd();
  process.chdir(rig.folder);
  try {
    for (let level = 0; level < levels; level += 1) {
      mkdirSync("deeper");
      process.chdir("deeper");
    }
    writeFileSync("file", "");
  } finally {
    process.chdir(home);
  }
  await removeFolder(rig.folder);
  equal(existsSync(rig.folder), false);
});
