/** Inputs that stay in an attempt's root, and what the same user's next attempt finds there. */
import { deepEqual, equal, notEqual, ok } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, closeSync, lstatSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { rigHome } from "#worker/process/testing/rig.ts";
import { attemptsIn, reclaimAttempts, type AttemptFolder } from "#worker/sandbox/folders/attempt-folder.ts";
import { AttemptFolders } from "#worker/sandbox/folders/attempt-folders.ts";
import { whyNotUsedAgain } from "#worker/sandbox/testing/rig.ts";
import { KeptFolders } from "./kept-folders.ts";
import { LinkCache } from "./link-cache.ts";
import { listing, memoryBlobs, requestOf, type Words } from "./testing/rig.ts";
import { stage } from "./stage.ts";
import { Trees } from "./tree.ts";

const uid = 70_001;

type Does = (folder: AttemptFolder) => void;
type Doing = { does?: Does; outputs?: readonly string[]; uid?: number; hasPrinted?: boolean };
type Limits = { entriesMax?: number; bytesMax?: number; boxed?: boolean };

class Rig implements AsyncDisposable {
  readonly home: string;
  readonly blobs = memoryBlobs();
  readonly trees = new Trees();
  readonly links: LinkCache;
  readonly kept: KeptFolders;
  readonly folders: AttemptFolders;
  readonly lines: string[] = [];

  private constructor(home: string, links: LinkCache, kept: KeptFolders, boxed: boolean) {
    this.home = home;
    this.links = links;
    this.kept = kept;
    this.folders = new AttemptFolders({ home, boxed, log: (line) => this.lines.push(line) });
  }

  static async open({ boxed = true, ...limits }: Limits = {}): Promise<Rig> {
    const home = rigHome();
    const links = await LinkCache.open({ folder: join(home, "links"), bytesMax: 100_000_000 });
    const kept = await KeptFolders.open({ folder: join(home, "kept"), bytesMax: 100_000_000, ...limits });
    return new Rig(home, links, kept as KeptFolders, boxed);
  }

  /** Starts one attempt in a folder; returns what was in its root before anything ran. */
  async begin(folder: AttemptFolder, words: Words, { outputs = [], uid: user = uid }: Doing = {}) {
    const { root } = folder;
    const left = this.folders.takeLeft(folder);
    const request = await requestOf(this.blobs, words, outputs);
    const { inputs } = await stage(request, { root, uid: user, files: "link", left }, this);
    if (!inputs.areAsFound) this.folders.seal(folder);
    return { inputs, found: listing(root) };
  }

  async run(words: Words, doing: Doing = {}): Promise<AttemptFolder & { readonly found: readonly string[] }> {
    const folder = this.folders.take(doing.uid ?? uid);
    const { inputs, found } = await this.begin(folder, words, doing);
    doing.does?.(folder);
    this.folders.leaveInputs(folder, inputs);
    this.folders.giveBack(folder, doing.hasPrinted ?? false);
    await this.folders.settled();
    return { ...folder, found };
  }

  /** Twice, because only what is wanted a second time stays. */
  async settle(words: Words, doing: Doing = {}): Promise<AttemptFolder & { readonly found: readonly string[] }> {
    await this.run(words, doing);
    return await this.run(words, doing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.folders.close();
    equal(this.kept.entries - entriesBelow(join(this.home, "kept")), 0, "nothing else is counted");
    rmSync(this.home, { recursive: true, force: true });
    deepEqual(this.lines, []);
  }
}

/** In each of the folders that are there. */
function entriesBelow(path: string): number {
  return readdirSync(path, { recursive: true }).length;
}

const stranger = (command: string, ...args: readonly string[]): void =>
  void execFileSync("setpriv", [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", command, ...args]);
const sh =
  (script: string): Does =>
  ({ root }) =>
    stranger("sh", "-c", `cd ${root} && ${script}`);

/** Changes with every move. */
const seen = (root: string, path: string): string => {
  const { ino, ctimeMs } = lstatSync(join(root, path));
  return `${ino} ${ctimeMs}`;
};
const ino = (root: string, path: string): number => lstatSync(join(root, path)).ino;

const words: Words = { "a/f": "1", "a/b/g*": "2", "a/b/l@": "g", "a/e/": "", "c/h": "3" };

describe("inputs that stay in a root", { skip: whyNotUsedAgain() }, () => {
  test("are used in place, with the root, by the next attempt that wants the same", async () => {
    await using rig = await Rig.open();
    const first = await rig.run(words);
    deepEqual(readdirSync(first.root), [], "inputs wanted once are kept where every root can get them");
    const second = await rig.run(words);
    deepEqual(second.found, first.found);
    const before = ["", "a", "c"].map((path) => seen(second.root, path));
    const third = await rig.run(words);
    deepEqual(third.found, first.found);
    const fourth = await rig.run(words, { hasPrinted: true });
    deepEqual((await rig.run(words)).found, first.found);
    equal(fourth.path, second.path);
    deepEqual(
      ["", "a", "c"].map((path) => seen(fourth.root, path)),
      before,
    );
  });

  test("are used beside outputs, files and folders that are made for each attempt", async () => {
    await using rig = await Rig.open();
    const more = { ...words, i: "4", "l@": "i", "out/x/f": "5" };
    const outputs = ["out/made", "top", "new/made"];
    const does = sh("echo > out/made; echo > top; echo > new/made");
    const first = await rig.run(more, { outputs });
    await rig.run(more, { outputs, does });
    // A new file in the root is a change of it, so nothing is left in it then.
    const { root } = await rig.settle(more, { outputs, does: sh("echo > out/made; echo > new/made") });
    deepEqual(readdirSync(root).toSorted(), ["a", "c"]);
    const before = ["a", "c"].map((path) => seen(root, path));
    const next = await rig.run(more, { outputs });
    deepEqual(next.found, first.found);
    deepEqual(
      ["a", "c"].map((path) => seen(next.root, path)),
      before,
    );
  });

  const changes: Readonly<Record<string, string>> = {
    "a new file": "touch a/b/new",
    "a new file that is gone again": "touch a/b/new; rm a/b/new",
    "a removed file": "rm -f a/b/g",
    "another file": "rm -f a/f; echo other > a/f",
    "a new folder": "mkdir a/e/d",
    "another mode": "chmod 777 a/b",
    "another mode and back": "chmod 777 a; chmod 755 a",
    "other times": "touch -d @1 a",
    "a link in its place": "mv a moved; ln -s moved a",
    "a copy in its place": "mv a moved; cp -r moved a; rm -rf moved",
    "another that was left in its place": "mv a x; mv c a; mv x c",
    "nothing in its place": "rm -rf a",
    "something beside it": "touch trap",
    "something beside it that is gone again": "touch trap; rm trap",
  };
  test("Y3: an action cannot change the times of a link, which no folder's ctime would show", async () => {
    await using rig = await Rig.open();
    const touched = "touch -h -d @1 a/b/l 2>/dev/null && echo changed > a/f; true";
    const { root } = await rig.run(words, { does: sh(touched) });
    const { root: next, found } = await rig.run(words);
    equal(next, root);
    ok(found.includes("a/f 444 1"));
    ok(lstatSync(join(next, "a/b/l")).mtimeMs > 1_000);
  });

  for (const [what, script] of Object.entries(changes)) {
    test(`Y3: not if the action left ${what}`, async () => {
      await using rig = await Rig.open();
      const first = await rig.settle(words);
      // Its inode number is not reused while it is open.
      const open = openSync(join(first.root, "a"), "r");
      const a = ino(first.root, "a");
      const second = await rig.run(words, { does: sh(script) });
      equal(second.path, first.path, "the folder can be cleared");
      const third = await rig.run(words);
      deepEqual(third.found, first.found);
      const fourth = await rig.run(words);
      deepEqual(fourth.found, first.found);
      if (!script.includes("trap")) notEqual(ino(fourth.root, "a"), a, "it is not the same folder");
      closeSync(open);
    });

    test(`Z1: not if someone left ${what} meanwhile`, async () => {
      await using rig = await Rig.open({ boxed: false });
      const first = await rig.settle(words);
      sh(script)(first);
      const second = await rig.run(words);
      notEqual(second.path, first.path);
      deepEqual(second.found, first.found);
      deepEqual((await rig.run(words)).found, first.found);
    });

    test(`Z1: not ahead of time if someone left ${what} meanwhile`, async () => {
      await using rig = await Rig.open();
      const first = await rig.settle(words);
      const ahead = rig.folders.ahead(uid) as AttemptFolder;
      equal(ahead.path, first.path);
      sh(script)(ahead);
      ok(!rig.folders.isStillGood(ahead, uid));
    });

    test(`Z1: not if someone left ${what} before it is cleared`, async () => {
      await using rig = await Rig.open();
      await rig.settle(words);
      const folder = rig.folders.take(uid);
      const { inputs, found } = await rig.begin(folder, words);
      rig.folders.leaveInputs(folder, inputs);
      sh(script)(folder);
      rig.folders.giveBack(folder, true);
      await rig.folders.settled();
      deepEqual((await rig.run(words)).found, found);
    });
  }

  const others: Readonly<Record<string, Words>> = {
    "another folder there": { "a/f": "another", "c/h": "3" },
    "a file there": { a: "a file", "c/h": "3" },
    "a link there": { "a@": "c", "c/h": "3" },
    "an empty folder there": { "a/": "", "c/h": "3" },
    "it elsewhere": { "b/f": "1", "b/b/g*": "2", "b/b/l@": "g", "b/e/": "", "c/h": "3" },
    "it inside of another": { "c/a/f": "1", "c/a/b/g*": "2", "c/a/b/l@": "g", "c/a/e/": "" },
    "it at two names": { ...words, "d/h": "3", "e/h": "3" },
    "them the other way round": { "c/f": "1", "c/b/g*": "2", "c/b/l@": "g", "c/e/": "", "a/h": "3" },
    "nothing at all": {},
  };
  for (const [what, other] of Object.entries(others))
    test(`make way for an action that wants ${what}`, async () => {
      await using plain = await Rig.open();
      const expected = (await plain.run(other)).found;
      await using rig = await Rig.open();
      const first = await rig.settle(words);
      const second = await rig.run(other);
      equal(second.path, first.path);
      deepEqual(second.found, expected);
      deepEqual((await rig.run(words)).found, first.found);
      deepEqual((await rig.run(other)).found, expected);
      deepEqual((await rig.run(other)).found, expected);
    });

  test("make way for an action with outputs in them", async () => {
    await using rig = await Rig.open();
    const { root, found } = await rig.settle(words);
    const a = ino(root, "a");
    const does = sh("echo > a/out; echo > a/b/out");
    const second = await rig.run(words, { outputs: ["a/out", "a/b/out"], does });
    deepEqual(second.found, found);
    notEqual(ino(second.root, "c"), a);
    const third = await rig.run(words);
    deepEqual(third.found, found);
    equal(ino(third.root, "a"), a, "it was kept meanwhile");
  });

  test("the same folder at two names stays at both", async () => {
    await using rig = await Rig.open();
    const twice = { "x/f": "1", "y/f": "1" };
    const { root } = await rig.settle(twice);
    const before = [seen(root, "x"), seen(root, "y")];
    const next = await rig.run(twice);
    deepEqual([seen(next.root, "x"), seen(next.root, "y")], before);
  });

  test("large ones are not left: they are kept where every root can get them", async () => {
    await using rig = await Rig.open();
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`a/${at}`, "1"]));
    const { root } = await rig.settle({ ...many, "c/h": "3" });
    deepEqual(readdirSync(root), ["c"]);
  });

  test("are never used by another user", async () => {
    await using rig = await Rig.open();
    const first = await rig.settle(words);
    const other = await rig.settle(words, { uid: uid + 1 });
    notEqual(other.path, first.path);
    deepEqual(other.found, first.found);
    equal(lstatSync(join(other.root, "a/b")).uid, uid + 1);
    equal(lstatSync(join(first.root, "a/b")).uid, uid);
  });

  test("are removed with all of their user's if one of its processes may be alive", async () => {
    await using rig = await Rig.open();
    await rig.settle(words);
    equal(rig.kept.entries, 8);
    rig.folders.distrust(uid);
    equal(rig.kept.entries, 0);
    await rig.folders.settled();
    deepEqual(readdirSync(attemptsIn(rig.home)), []);
  });

  test("count as kept: the least recently kept goes first, with its root", async () => {
    await using rig = await Rig.open({ entriesMax: 10 });
    const first = await rig.settle(words);
    equal(rig.kept.entries, 8);
    await rig.settle({ "d/f": "1" }, { uid: uid + 1 });
    equal(rig.kept.entries, 10);
    const third = await rig.settle({ "d/f": "1" }, { uid: uid + 2 });
    equal(rig.kept.entries, 4);
    await rig.folders.settled();
    ok(!readdirSync(attemptsIn(rig.home)).some((name) => first.path.endsWith(name)));
    deepEqual((await rig.run(words)).found, first.found);
    equal((await rig.run({ "d/f": "1" }, { uid: uid + 2 })).path, third.path);
  });

  test("removed while an attempt is prepared are not given to it", async () => {
    await using rig = await Rig.open({ entriesMax: 8 });
    await rig.settle(words);
    const ahead = rig.folders.ahead(uid) as AttemptFolder;
    equal(rig.kept.entries, 8);
    await rig.settle({ "d/f": "1" }, { uid: uid + 1 });
    equal(rig.kept.entries, 2);
    ok(!rig.folders.isStillGood(ahead, uid));
    await rig.folders.settled();
    ok(!readdirSync(attemptsIn(rig.home)).some((name) => ahead.path.endsWith(name)));
  });

  test("in use are not counted, and not removed", async () => {
    await using rig = await Rig.open({ entriesMax: 8 });
    await rig.settle(words);
    const folder = rig.folders.take(uid);
    const { found } = await rig.begin(folder, words);
    equal(rig.kept.entries, 0);
    await rig.settle(words, { uid: uid + 1 });
    deepEqual(listing(folder.root), found);
    rig.folders.remove(folder);
  });

  test("are not used by the node's next process", async () => {
    await using rig = await Rig.open();
    await rig.settle(words);
    await reclaimAttempts(rig.home, new Set());
    deepEqual(readdirSync(attemptsIn(rig.home)), []);
    await rig.folders.close();
  });

  test("no other name is mistaken for one of theirs", async () => {
    await using rig = await Rig.open();
    const odd = { "\uFFFD/f": "1", "ä/f": "2" };
    // A name that is not UTF-8, and decodes to the first of these.
    const does: Does = ({ root }) => mkdirSync(Buffer.concat([Buffer.from(`${root}/out/`), Buffer.from([0xff])]));
    const outputs = ["out/f"];
    const { found } = await rig.settle(odd, { outputs, does });
    const folder = rig.folders.take(uid);
    const { inputs } = await rig.begin(folder, odd, { outputs });
    rig.folders.leaveInputs(folder, inputs);
    rig.folders.giveBack(folder, true);
    await rig.folders.settled();
    deepEqual(readdirSync(folder.root, "latin1").toSorted(), ["Ã¤", "ï¿½"]);
    deepEqual((await rig.run(odd, { outputs })).found, found);
  });

  test("whatever actions do and want, the next gets what its tree says", async () => {
    await using rig = await Rig.open({ entriesMax: 30 });
    const trees = [words, ...Object.values(others), { ...words, i: "4" }];
    const expected: (readonly string[])[] = [];
    for (const [index, tree] of trees.entries()) {
      await using plain = await Rig.open();
      expected[index] = (await plain.run(tree)).found;
    }
    const at = fc.constantFrom("a", "a/b", "c", ".");
    const deed = fc.tuple(fc.constantFrom("nothing", "nothing", "write", "remove", "rights"), at);
    const which = fc.integer({ min: 0, max: trees.length - 1 });
    const action = fc.record({ which, deed, isFree: fc.boolean(), hasPrinted: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 2, maxLength: 8 }), async (actions) => {
        for (const { which: one, deed: done, isFree, hasPrinted } of actions) {
          const does: Does = ({ root }) => doIn(join(root, done[1]), done[0]);
          const { found } = await rig.run(trees[one] as Words, { hasPrinted, does: isFree ? does : () => {} });
          deepEqual(found, expected[one]);
        }
      }),
      { numRuns: 60 },
    );
  });
});

function doIn(path: string, what: string): void {
  try {
    if (what === "write") writeFileSync(join(path, "w"), "w");
    else if (what === "remove") rmSync(join(path, readdirSync(path)[0] ?? "none"), { recursive: true });
    else if (what === "rights" && lstatSync(path).isDirectory()) chmodSync(path, 0o700);
  } catch {
    // It no longer exists.
  }
}
