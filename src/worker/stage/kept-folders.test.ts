import { deepEqual, equal, notEqual, ok } from "node:assert/strict";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { rigHome } from "#worker/process/testing/rig.ts";
import { clearAway } from "#testing/clear-away.ts";
import { KeptFolders } from "./kept-folders.ts";
import { LinkCache } from "./link-cache.ts";
import { listing, memoryBlobs, requestOf, type Words } from "./testing/rig.ts";
import { stage, type Staged } from "./stage.ts";
import { Trees } from "./tree.ts";

/** Nothing of it stays in its root. */
type OwnStaged = Staged & { readonly root: string; giveBack(): boolean };

const ownUid = process.getuid?.() ?? 0;

class Rig implements Disposable {
  readonly home: string;
  readonly blobs = memoryBlobs();
  readonly trees = new Trees();
  readonly links: LinkCache;
  readonly kept: KeptFolders;
  #roots = 0;

  private constructor(home: string, links: LinkCache, kept: KeptFolders) {
    this.home = home;
    this.links = links;
    this.kept = kept;
  }

  /** Undefined on older kernels, where it cannot work. */
  static async open(
    limits: { entriesMax?: number; bytesMax?: number; checkedForMs?: number } = {},
  ): Promise<Rig | undefined> {
    const home = rigHome();
    const links = await LinkCache.open({ folder: join(home, "links"), bytesMax: 100_000_000 });
    const kept = await KeptFolders.open({ folder: join(home, "kept"), bytesMax: 100_000_000, ...limits });
    if (kept) return new Rig(home, links, kept);
    clearAway(home);
    return undefined;
  }

  async stage(words: Words, outputs: readonly string[] = []): Promise<OwnStaged> {
    this.#roots += 1;
    const root = join(this.home, `root-${this.#roots}`);
    mkdirSync(root);
    const request = await requestOf(this.blobs, words, outputs);
    const staged = await stage(request, { root, uid: ownUid, files: "link" }, this);
    return { ...staged, root, giveBack: () => staged.inputs.leave(false).isNothingElse };
  }

  [Symbol.dispose](): void {
    clearAway(this.home);
  }
}

const words: Words = { "a/f": "1", "a/b/g*": "2", "a/b/l@": "g", "a/e/": "", "c/h": "3", i: "4" };
const ino = (root: string, path: string): number => lstatSync(join(root, path)).ino;
const skip = await whyNotKept();
const opened = async (limits = {}): Promise<Rig> => (await Rig.open(limits)) as Rig;

async function whyNotKept(): Promise<string | false> {
  using rig = await Rig.open();
  return rig ? false : "times of files are too coarse here";
}

describe("folders that are kept (Y3)", { skip }, () => {
  test("a folder that an action left unchanged is moved to the next action that wants it", async () => {
    using rig = await opened();
    const first = await rig.stage(words);
    const [expected, a] = [listing(first.root), ino(first.root, "a")];
    first.giveBack();
    deepEqual(readdirSync(first.root), ["i"]);
    const second = await rig.stage(words);
    deepEqual(listing(second.root), expected);
    equal(ino(second.root, "a"), a);
    second.giveBack();
    const third = await rig.stage({ "other/a/f": "1", "c/h": "3" });
    deepEqual(listing(third.root), ["c/ 755", "c/h 444 3", "other/ 755", "other/a/ 755", "other/a/f 444 1"]);
  });

  const changes: Readonly<Record<string, (root: string) => void>> = {
    "a new file": (root) => writeFileSync(join(root, "a/b/new"), ""),
    "a new file that is gone again": (root) => {
      writeFileSync(join(root, "a/b/new"), "");
      unlinkSync(join(root, "a/b/new"));
    },
    "a removed file": (root) => unlinkSync(join(root, "a/b/g")),
    "a renamed file": (root) => renameSync(join(root, "a/f"), join(root, "a/F")),
    "a new folder": (root) => mkdirSync(join(root, "a/e/d")),
    "another mode": (root) => chmodSync(join(root, "a/b"), 0o777),
    "another mode and back": (root) => {
      chmodSync(join(root, "a/e"), 0o777);
      chmodSync(join(root, "a/e"), 0o755);
    },
    "other times": (root) => utimesSync(join(root, "a"), 1, 1),
    "a link in its place": (root) => {
      renameSync(join(root, "a"), join(root, "moved"));
      symlinkSync("moved", join(root, "a"));
    },
    "nothing in its place": (root) => renameSync(join(root, "a"), join(root, "moved")),
  };
  for (const [what, change] of Object.entries(changes))
    test(`not kept: ${what}`, async () => {
      using rig = await opened();
      const first = await rig.stage(words);
      const [expected, a, c] = [listing(first.root), ino(first.root, "a"), ino(first.root, "c")];
      change(first.root);
      first.giveBack();
      const second = await rig.stage(words);
      deepEqual(listing(second.root), expected);
      notEqual(ino(second.root, "a"), a, "it is not the same folder");
      equal(ino(second.root, "c"), c, "the one beside it is");
    });

  const damages: Readonly<Record<string, (path: string) => void>> = {
    "other bytes in one of its files": (path) => {
      chmodSync(path, 0o644);
      writeFileSync(path, "9");
    },
    "other bytes of the same size, with the mode as before": (path) => {
      chmodSync(path, 0o644);
      writeFileSync(path, "9");
      chmodSync(path, 0o444);
    },
    "a file that was cut": (path) => truncateSync(path),
  };
  for (const [what, damage] of Object.entries(damages))
    test(`Y3: made again from the store: ${what}, here and in the cache that it is linked from`, async () => {
      using rig = await opened({ checkedForMs: 0 });
      const first = await rig.stage(words);
      const expected = listing(first.root);
      first.giveBack();
      const kept = readdirSync(join(rig.home, "kept"), { recursive: true, encoding: "utf8" });
      const file = kept.find((path) => path.endsWith("/f"));
      ok(file, kept.join());
      damage(join(rig.home, "kept", file));
      const second = await rig.stage(words);
      deepEqual(listing(second.root), expected);
      second.giveBack();
      deepEqual(listing((await rig.stage(words)).root), expected);
    });

  test("a folder with outputs is made again, those beside and below it are kept", async () => {
    using rig = await opened();
    const outputs = ["a/out", "a/new/out"];
    const first = await rig.stage(words, outputs);
    const [a, b] = [ino(first.root, "a"), ino(first.root, "a/b")];
    writeFileSync(join(first.root, "a/out"), "made");
    first.giveBack();
    const second = await rig.stage(words, outputs);
    notEqual(ino(second.root, "a"), a);
    equal(ino(second.root, "a/b"), b);
    ok(lstatSync(join(second.root, "a/new")).isDirectory());
  });

  test("the same folder twice in a tree is two folders", async () => {
    using rig = await opened();
    const twice = { "x/f": "1", "y/f": "1" };
    (await rig.stage(twice)).giveBack();
    deepEqual(listing((await rig.stage(twice)).root), ["x/ 755", "x/f 444 1", "y/ 755", "y/f 444 1"]);
  });

  test("a few copies of a folder are kept: the next action starts before the last one's is released", async () => {
    using rig = await opened();
    const all = await Promise.all(Array.from({ length: 5 }, () => rig.stage({ "a/f": "1" })));
    const inos = all.map(({ root }) => ino(root, "a"));
    for (const staged of all) staged.giveBack();
    const next = await Promise.all(Array.from({ length: 5 }, () => rig.stage({ "a/f": "1" })));
    const again = next.map(({ root }) => ino(root, "a")).filter((each) => inos.includes(each));
    equal(new Set(again).size, 3);
    equal(rig.kept.entries, 0);
  });

  test("no more is kept than allowed: the least recently kept goes first", async () => {
    using rig = await opened({ entriesMax: 4 });
    const first = await rig.stage({ "a/f": "1" });
    const second = await rig.stage({ "b/f": "2" });
    const third = await rig.stage({ "c/f": "3" });
    const inos = [ino(first.root, "a"), ino(second.root, "b"), ino(third.root, "c")];
    for (const staged of [first, second, third]) staged.giveBack();
    equal(rig.kept.entries, 4);
    const { root } = await rig.stage({ "a/f": "1", "b/f": "2", "c/f": "3" });
    deepEqual([ino(root, "b"), ino(root, "c")], inos.slice(1));
    deepEqual(listing(root).length, 6);
  });

  test("nothing is left of what an earlier process kept", async () => {
    using rig = await opened();
    (await rig.stage(words)).giveBack();
    const folder = join(rig.home, "kept");
    ok(readdirSync(folder).length > 0);
    await KeptFolders.open({ folder, bytesMax: 1_000 });
    deepEqual(readdirSync(folder), []);
  });

  test("whatever actions do to their folders, the next gets what its tree says", async () => {
    using rig = await opened();
    const folder = fc.constantFrom("a", "a/b", "a/e", "c", "");
    const deed = fc.tuple(fc.constantFrom("write", "remove", "rights", "move", "nothing"), folder);
    const root = (await rig.stage(words)).root;
    const expected = listing(root);
    await fc.assert(
      fc.asyncProperty(fc.array(deed, { maxLength: 4 }), async (deeds) => {
        const staged = await rig.stage(words);
        deepEqual(listing(staged.root), expected);
        for (const [what, at] of deeds) doIn(join(staged.root, at), what);
        staged.giveBack();
      }),
      { numRuns: 60 },
    );
  });
});

function doIn(path: string, what: string): void {
  try {
    if (what === "write") writeFileSync(join(path, "w"), "w");
    else if (what === "remove") rmSync(join(path, readdirSync(path)[0] ?? "none"), { recursive: true });
    else if (what === "rights") chmodSync(path, 0o700);
    else if (what === "move") renameSync(path, `${path}.moved`);
  } catch {
    // It no longer exists.
  }
}
