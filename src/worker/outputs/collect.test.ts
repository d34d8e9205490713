import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import type { MemoryBlobs } from "#blobs/memory/memory.ts";
import { decode, encode } from "#wire/message.ts";
import { Directory, Tree } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { memoryBlobs, put, wireDigest } from "#worker/stage/testing/rig.ts";
import { collectOutputs, OutputRefused, type CollectOptions, type Outputs, type DeclaredOutputs } from "./collect.ts";

const noWords: DeclaredOutputs = {
  workingDirectory: "",
  outputPaths: [],
  outputFiles: [],
  outputDirectories: [],
  outputNodeProperties: [],
  outputDirectoryFormat: 0,
};

class Rig implements Disposable {
  readonly root = mkdtempSync(join(tmpdir(), "millrace-outputs-"));
  readonly blobs: MemoryBlobs = memoryBlobs();

  write(path: string, bytes: string | Uint8Array = path, mode = 0o644): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), bytes);
    chmodSync(join(this.root, path), mode);
  }

  link(path: string, target: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    symlinkSync(target, join(this.root, path));
  }

  collect(words: Partial<DeclaredOutputs>, more: Partial<CollectOptions> = {}): Promise<Outputs> {
    const options = { root: this.root, seenAs: "/tmp/build", digestFunction: "sha256", ...more } as const;
    return collectOutputs({ ...noWords, ...words }, this.blobs, { symlinks: { absoluteLinks: "allowed" }, ...options });
  }

  async bytes(digest: { hash: string; sizeBytes: number } | undefined): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for await (const part of this.blobs.read(`${digest?.hash}/${digest?.sizeBytes}`)) parts.push(Uint8Array.from(part));
    return Buffer.concat(parts);
  }

  async tree(path: string, more: Partial<CollectOptions> = {}): Promise<Tree> {
    const { outputDirectories } = await this.collect({ outputPaths: [path] }, more);
    return decode(Tree, await this.bytes(outputDirectories[0]?.treeDigest));
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

const refused = (error: unknown): boolean => error instanceof OutputRefused;
const sha = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

describe("outputs", () => {
  test("REAPI-72: files with their bytes and modes, in the store", async () => {
    using rig = new Rig();
    rig.write("o/plain", "plain", 0o640);
    rig.write("o/run", "run", 0o701);
    const { outputFiles, digests } = await rig.collect({ outputPaths: ["o/plain", "o/run"] });
    deepEqual(
      outputFiles.map(({ path, isExecutable, digest, nodeProperties }) => [path, isExecutable, digest, nodeProperties]),
      [
        ["o/plain", false, wireDigest(await put(rig.blobs, "plain")), undefined],
        ["o/run", true, wireDigest(await put(rig.blobs, "run")), undefined],
      ],
    );
    equal(digests.length, 2);
    deepEqual(await rig.blobs.missing(digests), []);
  });

  test("REAPI-77: output_paths win over the fields of older clients, which fix the kind", async () => {
    using rig = new Rig();
    rig.write("f");
    rig.write("d/x");
    const { outputFiles, outputDirectories } = await rig.collect({
      outputPaths: ["f"],
      outputFiles: ["d/x"],
      outputDirectories: ["d"],
    });
    deepEqual([outputFiles.map(({ path }) => path), outputDirectories], [["f"], []]);
    const old = await rig.collect({ outputFiles: ["f"], outputDirectories: ["d"] });
    deepEqual([old.outputFiles[0]?.path, old.outputDirectories[0]?.path], ["f", "d"]);
    await rejects(rig.collect({ outputFiles: ["d"] }), refused);
    await rejects(rig.collect({ outputDirectories: ["f"] }), refused);
  });

  test("REAPI-77: the empty path is the working directory; paths are returned as they were requested", async () => {
    using rig = new Rig();
    rig.write("w/a");
    rig.write("b");
    const { outputDirectories, outputFiles } = await rig.collect({ workingDirectory: "w", outputPaths: ["", "../b"] });
    deepEqual([outputDirectories[0]?.path, outputFiles[0]?.path], ["", "../b"]);
    await rejects(rig.collect({ workingDirectory: "w", outputPaths: ["../../etc/passwd"] }), (error) =>
      isFault(error, "invalid"),
    );
  });

  test("REAPI-78: a missing output is left out; one that is no file, folder or link is refused at once", async () => {
    using rig = new Rig();
    rig.write("there");
    const { outputFiles } = await rig.collect({ outputPaths: ["there", "not", "not/deep", "there/below"] });
    deepEqual(
      outputFiles.map(({ path }) => path),
      ["there"],
    );
    execFileSync("mkfifo", [join(rig.root, "pipe")]);
    await rejects(rig.collect({ outputPaths: ["pipe"] }), refused);
    mkdirSync(join(rig.root, "d"));
    execFileSync("mkfifo", [join(rig.root, "d/pipe")]);
    await rejects(rig.collect({ outputPaths: ["d"] }), refused);
  });

  test("REAPI-79: links are reported, not followed, also in the fields of older clients", async () => {
    using rig = new Rig();
    rig.write("d/f");
    rig.link("to-file", "d/f");
    rig.link("to-dir", "d");
    rig.link("dangling", "nowhere");
    rig.link("absolute", "/etc/passwd");
    const outputPaths = ["to-file", "to-dir", "dangling", "absolute"];
    const { outputSymlinks, outputFileSymlinks, outputDirectorySymlinks, outputFiles } = await rig.collect({
      outputPaths,
    });
    deepEqual(
      outputSymlinks.map(({ path, target }) => [path, target]),
      [
        ["to-file", "d/f"],
        ["to-dir", "d"],
        ["dangling", "nowhere"],
        ["absolute", "/etc/passwd"],
      ],
    );
    deepEqual(
      outputDirectorySymlinks.map(({ path }) => path),
      ["to-dir"],
    );
    deepEqual(
      outputFileSymlinks.map(({ path }) => path),
      ["to-file", "dangling", "absolute"],
    );
    deepEqual(outputFiles, []);
    await rejects(rig.collect({ outputPaths }, { symlinks: { absoluteLinks: "refused" } }), refused);
    rig.link("d/inner", "/etc");
    await rejects(rig.collect({ outputPaths: ["d"] }, { symlinks: { absoluteLinks: "refused" } }), refused);
  });

  test("a link above an output cannot lead outside", async () => {
    using rig = new Rig();
    rig.write("real/f", "inside");
    rig.link("out", "/etc");
    rig.link("up", "../..");
    rig.link("here", "real");
    rig.link("abs", "/tmp/build/real");
    rig.link("loop", "loop");
    const outputPaths = ["out/passwd", "up/etc/passwd", "here/f", "abs/f", "loop/f"];
    const { outputFiles } = await rig.collect({ outputPaths });
    deepEqual(
      outputFiles.map(({ path }) => path),
      ["here/f", "abs/f"],
    );
  });

  test("REAPI-80: the tree of an empty folder is two bytes", async () => {
    using rig = new Rig();
    mkdirSync(join(rig.root, "d"));
    const { outputDirectories } = await rig.collect({ outputPaths: ["d"] });
    equal((await rig.bytes(outputDirectories[0]?.treeDigest)).toString("hex"), "0a00");
    equal(outputDirectories[0]?.isTopologicallySorted, true);
  });

  test("REAPI-80: equal folders are stored once", async () => {
    using rig = new Rig();
    for (const name of ["a", "b", "c/d"]) rig.write(`t/${name}/same`, "x");
    const { children } = await rig.tree("t");
    equal(children.length, 2, "the three that are equal, and c");
  });

  test("REAPI-71: names are sorted by their bytes, not by UTF-16 units", async () => {
    using rig = new Rig();
    const names = ["\u{10000}", "\uffee", "a", "Z", "é"];
    for (const name of names) rig.write(`t/${name}`);
    const { root } = await rig.tree("t");
    deepEqual(
      root?.files.map(({ name }) => name),
      ["Z", "a", "é", "\uffee", "\u{10000}"],
    );
  });

  test("REAPI-70: a name that is not UTF-8 is refused with its reason", async () => {
    using rig = new Rig();
    mkdirSync(join(rig.root, "d"));
    writeFileSync(Buffer.concat([Buffer.from(join(rig.root, "d/")), Buffer.from([0x61, 0xff])]), "");
    await rejects(rig.collect({ outputPaths: ["d"] }), (error) => refused(error) && /UTF-8.*aÿ/.test(String(error)));
  });

  test("REAPI-81: every directory is uploaded as a blob if requested", async () => {
    using rig = new Rig();
    rig.write("t/a/b/f");
    for (const outputDirectoryFormat of [1, 2]) {
      const { outputDirectories, digests } = await rig.collect({ outputPaths: ["t"], outputDirectoryFormat });
      const [{ rootDirectoryDigest, treeDigest } = {}] = outputDirectories;
      const { root } = decode(Tree, await rig.bytes(treeDigest));
      deepEqual(
        await rig.bytes(rootDirectoryDigest),
        encode(Directory, root ?? { files: [], directories: [], symlinks: [] }),
      );
      equal(digests.length, 5, "the file, three directories, the tree");
    }
    equal((await rig.collect({ outputPaths: ["t"] })).outputDirectories[0]?.rootDirectoryDigest, undefined);
  });

  test("REAPI-82: node properties only if requested, and only known ones", async () => {
    using rig = new Rig();
    rig.write("t/f", "x", 0o751);
    utimesSync(join(rig.root, "t/f"), 1_000.5, 1_000.5);
    const { outputFiles } = await rig.collect({ outputPaths: ["t/f"], outputNodeProperties: ["mtime", "unix_mode"] });
    deepEqual(outputFiles[0]?.nodeProperties, {
      properties: [],
      mtime: { seconds: 1_000, nanos: 500_000_000 },
      unixMode: { value: 0o751 },
    });
    await rejects(rig.collect({ outputNodeProperties: ["colour"] }), (error) => isFault(error, "invalid"));
  });

  test("REAPI-87: large, sparse and hard-linked files", async () => {
    using rig = new Rig();
    rig.write("big", Buffer.alloc(3_000_000, 7));
    rig.write("sparse", "");
    truncateSync(join(rig.root, "sparse"), 5_000_000);
    linkSync(join(rig.root, "big"), join(rig.root, "same"));
    const { outputFiles, digests } = await rig.collect(
      { outputPaths: ["big", "sparse", "same"] },
      { uploads: { memoryBytesMax: 0 } },
    );
    equal(digests.length, 2);
    equal(outputFiles[0]?.digest?.hash, sha(Buffer.alloc(3_000_000, 7)));
    equal(outputFiles[1]?.digest?.hash, sha(Buffer.alloc(5_000_000)));
    deepEqual(await rig.blobs.missing(digests), []);
  });

  test("too many, too deep and too large outputs are refused", async () => {
    using rig = new Rig();
    for (let i = 0; i < 20; i += 1) rig.write(`t/${i}`);
    rig.write("t/a/b/c/d");
    await rejects(rig.collect({ outputPaths: ["t"] }, { entriesMax: 10 }), refused);
    await rejects(rig.collect({ outputPaths: ["t"] }, { depthMax: 2 }), refused);
    await rejects(rig.collect({ outputPaths: ["t"] }, { uploads: { bytesMax: 10 } }), (error) =>
      isFault(error, "exhausted"),
    );
  });
});

/** Parses without the generated code: the bytes of a Tree's root and children as they are. */
function rawTree(bytes: Buffer): {
  readonly root: Buffer;
  readonly children: readonly Buffer[];
  readonly tags: readonly number[];
} {
  const tags: number[] = [];
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    tags.push(bytes[at++] ?? 0);
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0;
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    parts.push(bytes.subarray(at, at + length));
    at += length;
  }
  const [root = Buffer.alloc(0), ...children] = parts;
  return { root, children, tags };
}

test("REAPI-80: every tree has canonical bytes, and every digest in it is right", async () => {
  const name = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 6 })
    .filter((text) => !/[/\0\ud800-\udfff]/.test(text) && !/^\.{1,2}$/.test(text));
  const entry = fc.record({
    path: fc.array(name, { minLength: 1, maxLength: 4 }),
    kind: fc.constantFrom("file", "run", "link", "folder"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 12 }), async (entries) => {
      using rig = new Rig();
      mkdirSync(join(rig.root, "t"));
      for (const { path, kind } of entries) make(rig, join("t", ...path), kind);
      const { outputDirectories } = await rig.collect({ outputPaths: ["t"] });
      const bytes = await rig.bytes(outputDirectories[0]?.treeDigest);
      deepEqual(encode(Tree, decode(Tree, bytes)), bytes);
      const { root, children, tags } = rawTree(bytes);
      deepEqual(tags, [0x0a, ...children.map(() => 0x12)]);
      const place = new Map(children.map((child, index) => [sha(child), index]));
      equal(place.size, children.length, "each once");
      for (const [index, raw] of [root, ...children].entries()) {
        const { files, directories, symlinks } = decode(Directory, raw);
        deepEqual(encode(Directory, decode(Directory, raw)), raw);
        for (const list of [files, directories, symlinks]) {
          const names = list.map((one) => Buffer.from(one.name));
          deepEqual(
            names,
            names.toSorted((a, b) => Buffer.compare(a, b)),
          );
        }
        for (const { digest } of directories) ok((place.get(digest?.hash ?? "") ?? -1) >= index, "parents come first");
        for (const { digest } of files) await rig.bytes(digest);
      }
    }),
    { numRuns: 60 },
  );
});

/** A path that something else blocks is not created. */
function make(rig: Rig, path: string, kind: string): void {
  try {
    if (kind === "folder") mkdirSync(join(rig.root, path), { recursive: true });
    else if (kind === "link") rig.link(path, "somewhere/else");
    else rig.write(path, path, kind === "run" ? 0o755 : 0o644);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    ok(["EEXIST", "ENOTDIR", "EISDIR", "ENOENT", "ENAMETOOLONG"].includes(code), code);
  }
}
