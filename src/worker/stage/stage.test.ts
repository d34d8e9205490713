import { deepEqual, equal, ok, rejects, throws } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { encode } from "#wire/message.ts";
import { Directory } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { rigClock, rigHome, text } from "#worker/process/testing/rig.ts";
import { Sandbox } from "#worker/sandbox/sandbox.ts";
import type { StageTarget } from "./layout.ts";
import { LinkCache } from "./link-cache.ts";
import { checkWorkingDirectory, parentsOf, resolveOutput } from "./paths.ts";
import { memoryBlobs, put, putTree, wireDigest, type Words } from "./testing/rig.ts";
import { OutputParentTaken, stage, type StageRequest } from "./stage.ts";
import { MissingInputs, Trees } from "./tree.ts";

const isRoot = process.getuid?.() === 0;
const otherUid = 1_835_700_001;

class Rig implements AsyncDisposable {
  readonly home: string;
  readonly blobs = memoryBlobs();
  readonly trees = new Trees();
  readonly links: LinkCache;
  #roots = 0;

  private constructor(links: LinkCache, home: string) {
    this.links = links;
    this.home = home;
  }

  static async open({ bytesMax = 100_000_000 } = {}): Promise<Rig> {
    const home = rigHome();
    return new Rig(await LinkCache.open({ folder: join(home, "links"), bytesMax }), home);
  }

  async stage(words: Words, more: Partial<StageRequest> = {}, target: Partial<StageTarget> = {}): Promise<string> {
    return await this.stageRoot(await putTree(this.blobs, words), more, target);
  }

  async stageRoot(
    inputRoot: string,
    more: Partial<StageRequest> = {},
    target: Partial<StageTarget> = {},
  ): Promise<string> {
    this.#roots += 1;
    const root = target.root ?? join(this.home, `root-${this.#roots}`);
    if (target.root === undefined) mkdirSync(root);
    const request: StageRequest = {
      inputRoot,
      digestFunction: "sha256",
      workingDirectory: "",
      outputs: [],
      symlinks: { absoluteLinks: "allowed" },
      ...more,
    };
    await stage(request, { uid: undefined, files: "link", ...target, root }, this);
    return root;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.home, { recursive: true, force: true });
  }
}

const portsOf = ({ blobs, links, trees }: Rig) => ({ blobs, links, trees });
const invalid = (error: unknown): boolean => isFault(error, "invalid");
const directory = (more: Partial<Directory>): Buffer =>
  encode(Directory, { files: [], directories: [], symlinks: [], ...more });

describe("staging", () => {
  test("REAPI-72, REAPI-74: makes files, modes, folders and links as the tree says", async () => {
    await using rig = await Rig.open();
    const root = await rig.stage({
      "a/b/c.txt": "c",
      "run*": "#!",
      "a/empty/": "",
      "l@": "../../etc/x",
      "a/m@": "nowhere",
    });
    equal(text(join(root, "a/b/c.txt")), "c");
    deepEqual(
      [statSync(join(root, "run")).mode & 0o777, statSync(join(root, "a/b/c.txt")).mode & 0o777],
      [0o555, 0o444],
    );
    ok(lstatSync(join(root, "a/empty")).isDirectory());
    deepEqual([readlinkSync(join(root, "l")), readlinkSync(join(root, "a/m"))], ["../../etc/x", "nowhere"]);
    equal(statSync(join(root, "run")).mtimeMs, Date.UTC(2000, 0, 1), "REAPI-82: the same time for all");
  });

  test("REAPI-72: an executable and a plain file of one blob are two inodes; two equal files are one", async () => {
    await using rig = await Rig.open();
    const root = await rig.stage({ "x*": "same", f: "same", "d/f": "same" });
    const ino = (path: string): number => statSync(join(root, path)).ino;
    ok(ino("x") !== ino("f"));
    equal(ino("f"), ino("d/f"));
  });

  for (const name of ["", ".", "..", "a/b", "a\0b", "x".repeat(256)])
    test(`REAPI-70: refuses the name ${JSON.stringify(name.slice(0, 8))} for a file, a folder and a link`, async () => {
      await using rig = await Rig.open();
      const digest = wireDigest(await put(rig.blobs, "x"));
      const empty = wireDigest(await put(rig.blobs, directory({})));
      for (const bad of [
        { files: [{ name, digest, isExecutable: false }] },
        { directories: [{ name, digest: empty }] },
        { symlinks: [{ name, target: "x" }] },
      ])
        await rejects(rig.stageRoot(await put(rig.blobs, directory(bad))), invalid);
    });

  test("REAPI-70: refuses a name that occurs twice, of any kind", async () => {
    await using rig = await Rig.open();
    const digest = wireDigest(await put(rig.blobs, "x"));
    const empty = wireDigest(await put(rig.blobs, directory({})));
    const file = { name: "a", digest, isExecutable: false };
    await rejects(rig.stageRoot(await put(rig.blobs, directory({ files: [file, file] }))), invalid);
    const both = directory({ files: [file], directories: [{ name: "a", digest: empty }] });
    await rejects(rig.stageRoot(await put(rig.blobs, both)), invalid);
    const through = directory({
      symlinks: [{ name: "a", target: "/tmp" }],
      directories: [{ name: "a", digest: empty }],
    });
    await rejects(rig.stageRoot(await put(rig.blobs, through)), invalid, "nothing is created through a link");
  });

  test("REAPI-73: counts a tree's entries before it makes any of them", async () => {
    await using rig = await Rig.open();
    const leaf = await put(rig.blobs, "x");
    const files = Array.from({ length: 10 }, (_, i) => ({
      name: `f${i}`,
      digest: wireDigest(leaf),
      isExecutable: false,
    }));
    let below = await put(rig.blobs, directory({ files }));
    for (let level = 0; level < 12; level += 1) {
      const directories = Array.from({ length: 10 }, (_, i) => ({ name: `d${i}`, digest: wireDigest(below) }));
      below = await put(rig.blobs, directory({ directories }));
    }
    await rejects(rig.stageRoot(below), invalid, "10^13 files of 14 blobs");
    let deep = await put(rig.blobs, directory({}));
    for (let level = 0; level < 300; level += 1)
      deep = await put(rig.blobs, directory({ directories: [{ name: "d", digest: wireDigest(deep) }] }));
    await rejects(rig.stageRoot(deep), invalid);
  });

  test("REAPI-74: refuses absolute links if they are not allowed", async () => {
    await using rig = await Rig.open();
    await rejects(rig.stage({ "d/l@": "/etc" }, { symlinks: { absoluteLinks: "refused" } }), invalid);
    await rig.stage({ "d/l@": "../../x" }, { symlinks: { absoluteLinks: "refused" } });
  });

  test("REAPI-75: the working directory is a directory of the tree", async () => {
    await using rig = await Rig.open();
    await rig.stage({ "a/b/": "" }, { workingDirectory: "a/b" });
    for (const workingDirectory of ["c", "a/b/c", "a/../a", "/a", "a/", "./a", "f", "l"])
      await rejects(rig.stage({ "a/b/": "", f: "file", "l@": "a" }, { workingDirectory }), invalid, workingDirectory);
  });

  test("REAPI-76: parents of outputs are made, outputs are not; a file or link above one is refused", async () => {
    await using rig = await Rig.open();
    const root = await rig.stage(
      { "w/tree/": "", "w/x": "x" },
      { workingDirectory: "w", outputs: ["o/p/q", "tree", "../r/s", ""] },
    );
    deepEqual(
      ["w/o/p", "w/o/p/q", "r", "r/s", "w/tree"].map((path) => existsSync(join(root, path))),
      [true, false, true, false, true],
    );
    for (const words of [{ "o/p": "file" }, { "o/p@": "/tmp" }, { "o@": "/tmp" }] as readonly Words[])
      await rejects(rig.stage(words, { outputs: ["o/p/q"] }), OutputParentTaken);
    for (const outputs of [["/a"], ["a/"], ["../a"], ["a/../../b"]]) await rejects(rig.stage({}, { outputs }), invalid);
  });

  test("reports all missing directories and files at once", async () => {
    await using rig = await Rig.open();
    const root = await putTree(rig.blobs, { "a/f": "one", "b/g": "two", h: "three" });
    const gone = [await put(rig.blobs, "one"), await put(rig.blobs, "three")];
    for (const digest of gone) ok(rig.blobs.evict(digest));
    const missingOf = async (): Promise<readonly string[]> => {
      try {
        await rig.stageRoot(root);
        return [];
      } catch (error) {
        if (!(error instanceof MissingInputs)) throw error;
        return error.digests.toSorted();
      }
    };
    deepEqual(await missingOf(), gone.toSorted());
    const directoryB = await putTree(rig.blobs, { g: "two" });
    ok(rig.blobs.evict(directoryB));
    const fresh = new Trees();
    const asked = stage(
      {
        inputRoot: root,
        digestFunction: "sha256",
        workingDirectory: "",
        outputs: [],
        symlinks: { absoluteLinks: "allowed" },
      },
      { root: rig.home, uid: undefined, files: "link" },
      { ...portsOf(rig), trees: fresh },
    );
    await rejects(asked, (error) => {
      deepEqual((error as MissingInputs).digests.toSorted(), [...gone, directoryB].toSorted());
      return true;
    });
  });

  test("REAPI-82: a file with its own time and mode gets its own inode", async () => {
    await using rig = await Rig.open();
    const digest = wireDigest(await put(rig.blobs, "x"));
    const nodeProperties = { properties: [], mtime: { seconds: 1_000, nanos: 0 }, unixMode: { value: 0o4750 } };
    const files = [
      { name: "a", digest, isExecutable: false, nodeProperties },
      { name: "b", digest, isExecutable: false },
    ];
    const root = await rig.stageRoot(await put(rig.blobs, directory({ files })));
    const { mtimeMs, mode } = statSync(join(root, "a"));
    deepEqual([mtimeMs, mode & 0o7777], [1_000_000, 0o550]);
    equal(statSync(join(root, "b")).mode & 0o777, 0o444);
  });

  test("copies have inodes of their own", async () => {
    await using rig = await Rig.open();
    const [one, two] = [
      await rig.stage({ f: "x" }, {}, { files: "copy" }),
      await rig.stage({ f: "x" }, {}, { files: "copy" }),
    ];
    ok(statSync(join(one, "f")).ino !== statSync(join(two, "f")).ino);
    equal(statSync(join(one, "f")).mode & 0o777, 0o444);
  });
});

describe("an action cannot change the cache", { timeout: 60_000 }, () => {
  const attack = `for f in x f; do chmod 777 $f; echo bad > $f; printf bad >> $f; truncate -s 0 $f; done
    mv f g; ln g h; rm -f h; echo bad > g; touch -d 1999-01-01 x; exit 0`;
  const isolations = [
    { name: "in bubblewrap", isolation: { want: "bubblewrap" } },
    { name: "as another user", isolation: { want: "plain" } },
  ] as const;
  for (const { name, isolation } of isolations)
    test(`${name}, ${isRoot ? "by links" : "by copies"}`, async (t) => {
      if (!isRoot && isolation.want === "plain") return t.skip("needs root: another user");
      await using rig = await Rig.open();
      const options = {
        home: rig.home,
        socket: join(rig.home, "l"),
        lanes: 1,
        clock: rigClock,
        log: () => {},
        isolation,
      };
      let sandbox: Sandbox;
      try {
        sandbox = await Sandbox.open(options);
      } catch (error) {
        return t.skip(`needs bubblewrap: ${String(error)}`);
      }
      await using _closing = sandbox;
      await using attempt = await sandbox.attempt();
      const { uid } = attempt.lane;
      const files = sandbox.about.users === "own" ? "link" : "copy";
      await rig.stage({ "x*": "good", f: "good" }, {}, { root: attempt.folder.root, uid, files });
      const command = {
        tag: "t",
        argv: ["/bin/sh", "-c", attack],
        env: { PATH: "/usr/bin:/bin" },
        workingDirectory: "",
      };
      const limits = { limits: {}, timeoutMs: 20_000, leaseMs: 20_000, outputBytesMax: 10_000, network: false };
      equal((await attempt.run({ ...command, ...limits })).exitCode, 0);
      const digest = await put(rig.blobs, "good");
      for (const executable of [true, false]) {
        equal(text(rig.links.path(digest, executable)), "good");
        equal(statSync(rig.links.path(digest, executable)).mode & 0o777, executable ? 0o555 : 0o444);
      }
    });
});

describe("the cache of links", () => {
  test("stays within its limits, and drops the least recently used", async () => {
    await using rig = await Rig.open({ bytesMax: 100_000 });
    for (let i = 0; i < 30; i += 1) await rig.stage({ [`f${i}`]: `${i}`, always: "kept" });
    ok(rig.links.bytes <= 100_000);
    ok(existsSync(rig.links.path(await put(rig.blobs, "kept"), false)));
    ok(!existsSync(rig.links.path(await put(rig.blobs, "0"), false)));
    await rejects(rig.stage({ big: "x".repeat(200_000) }), (error) => isFault(error, "exhausted"));
  });

  test("survives a restart of the node; not a reboot of the machine, nor a wrong size", async () => {
    await using rig = await Rig.open();
    await rig.stage({ a: "aaa", b: "bbb" });
    const folder = join(rig.home, "links");
    const again = async (): Promise<number> => (await LinkCache.open({ folder, bytesMax: 1_000_000 })).bytes;
    const both = await again();
    ok(both > 0);
    const path = rig.links.path(await put(rig.blobs, "aaa"), false);
    chmodSync(path, 0o600);
    writeFileSync(path, "torn off");
    chmodSync(path, 0o444);
    equal(await again(), both / 2);
    writeFileSync(join(folder, ".boot"), "another life");
    equal(await again(), 0);
  });

  test("does not trust a file that could be written meanwhile", async () => {
    await using rig = await Rig.open();
    await rig.stage({ a: "aaa", b: "bbb" });
    const path = rig.links.path(await put(rig.blobs, "aaa"), false);
    chmodSync(path, 0o664); // like the fsGroup setting of a volume
    const again = await LinkCache.open({ folder: join(rig.home, "links"), bytesMax: 1_000_000 });
    equal(again.bytes, rig.links.bytes / 2);
    ok(!existsSync(path));
  });

  test("refuses bytes that differ from their digest", async () => {
    await using rig = await Rig.open();
    const digest = await put(rig.blobs, "right");
    const lying = {
      ...rig.blobs,
      prompt: undefined,
      read: async function* () {
        yield Buffer.from("wrong");
      },
    };
    await rejects(rig.links.hold([{ digest, executable: false }], lying as never), (error) =>
      isFault(error, "not-found"),
    );
    ok(!existsSync(rig.links.path(digest, false)));
  });

  test("many requests for one blob cause one fetch", async () => {
    await using rig = await Rig.open();
    const digest = await put(rig.blobs, "wanted");
    let reads = 0;
    const counting = { ...rig.blobs, prompt: undefined, read: (name: string) => ((reads += 1), rig.blobs.read(name)) };
    const holds = Array.from({ length: 20 }, () => rig.links.hold([{ digest, executable: false }], counting as never));
    for (const held of await Promise.all(holds)) held[Symbol.dispose]();
    equal(reads, 1);
  });
});

describe("paths", () => {
  test("REAPI-75: of outputs are resolved inside the root, or refused", () => {
    const rows = [
      ["", "a/b", "a/b"],
      ["w", "a", "w/a"],
      ["w/x", "../a", "w/a"],
      ["w", "", "w"],
      ["w", "..", ""],
      ["", "", ""],
      ["w", "./a//b", "w/a/b"],
    ] as const;
    for (const [from, path, to] of rows) equal(resolveOutput(from, path), to);
    for (const path of ["/a", "a/", "..", "../..", "a/../..", "a\0"]) throws(() => resolveOutput("", path), invalid);
    equal(checkWorkingDirectory("a/b"), "a/b");
    deepEqual(parentsOf("a/b/c"), ["a", "a/b"]);
  });

  test("REAPI-75: every accepted path is inside the root", () => {
    const part = fc.constantFrom("a", "b", "..", ".", "", "c d", "ü");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), fc.constantFrom("", "w", "w/x"), (parts, from) => {
        try {
          const to = resolveOutput(from, parts.join("/"));
          ok(!to.split("/").some((one) => one === ".." || one === ".") && !to.startsWith("/"), to);
        } catch (error) {
          ok(invalid(error));
        }
      }),
    );
  });
});

test(
  "no process that runs the action owns the staged files",
  { skip: !isRoot && "needs root: another user" },
  async () => {
    await using rig = await Rig.open();
    const root = await rig.stage({ "d/f": "x" }, {}, { uid: otherUid });
    deepEqual([statSync(join(root, "d")).uid, statSync(join(root, "d/f")).uid], [otherUid, 0]);
    const asOther = (script: string): string =>
      execFileSync("/bin/sh", ["-c", script], {
        uid: otherUid,
        gid: otherUid,
        cwd: join(root, "d"),
        stdio: "pipe",
      }).toString();
    equal(asOther("cat f; rm -f f; echo mine > f; cat f"), "xmine\n");
    equal(readFileSync(rig.links.path(await put(rig.blobs, "x"), false), "utf8"), "x");
  },
);
