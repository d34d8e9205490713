import { deepEqual, equal, notEqual, rejects } from "node:assert/strict";
import { test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { memoryBlobs, putTree, type Words } from "./testing/rig.ts";
import { directoriesOf } from "./stage.ts";
import { Trees, type Tree, type TreeLimits } from "./tree.ts";

const allowed = { absoluteLinks: "allowed" } as const;

function rig(limits: Partial<TreeLimits> = {}) {
  const blobs = memoryBlobs();
  const trees = new Trees(limits);
  const source = directoriesOf(blobs);
  return {
    layOut: async (words: Words, rule: Parameters<Trees["layOut"]>[3] = allowed): Promise<Tree> =>
      await trees.layOut(await putTree(blobs, words), source, "sha256", rule),
  };
}

test("a tree is laid out once, with the entries of each folder together", async () => {
  const { layOut } = rig();
  const words = { "a/b/f": "1", "a/g": "2", "a/l@": "g", "c/f": "1", h: "3" };
  const tree = await layOut(words);
  deepEqual(
    tree.folders.map(({ path, foldersEnd, files, links }) => [path, foldersEnd, files, links]),
    [
      ["a", 2, { from: 1, to: 3 }, { from: 0, to: 1 }],
      ["a/b", 2, { from: 2, to: 3 }, { from: 1, to: 1 }],
      ["c", 3, { from: 3, to: 4 }, { from: 1, to: 1 }],
    ],
  );
  deepEqual(
    tree.files.map(({ path }) => path),
    ["h", "a/g", "a/b/f", "c/f"],
  );
  const sizes = (digests: readonly Digest[]): number => new Set(digests).size;
  equal(tree.digests.length, sizes(tree.digests), "each once");
  equal(tree.digests.length, 3 + 3, "the root, a, and what a/b and c are both; three contents");
  equal(await layOut(words), tree);
});

test("a tree laid out under one symlink rule is not used under another", async () => {
  const { layOut } = rig();
  const words = { "l@": "/etc/passwd" };
  await layOut(words);
  await rejects(layOut(words, { absoluteLinks: "refused" }), (error: unknown) => isFault(error, "invalid"));
});

test("no more trees are cached than allowed: the least recently used goes first", async () => {
  const { layOut } = rig({ keptMax: 6 });
  const [a, b] = [await layOut({ a: "1", b: "2" }), await layOut({ c: "1", d: "2" })];
  equal(await layOut({ a: "1", b: "2" }), a);
  await layOut({ e: "1", f: "2" });
  equal(await layOut({ a: "1", b: "2" }), a);
  notEqual(await layOut({ c: "1", d: "2" }), b);
  const large = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`f${i}`, "1"]));
  notEqual(await layOut(large), await layOut(large), "a tree that is too large is not cached");
});
