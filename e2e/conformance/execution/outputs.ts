/** Items 71 and 77 to 82: outputs in canonical bytes. */
import { deepEqual, equal, ok } from "node:assert/strict";
import {
  Command_OutputDirectoryFormat as Format,
  Directory,
  SymlinkAbsolutePathStrategy_Value as Strategy,
  Tree,
  type ActionResult,
  type Command,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode } from "#wire/message.ts";
import { onWorkers, printed, ranWell, refused, run, sh, versionOf } from "#e2e/conformance/actions.ts";
import { needs, type Case } from "#e2e/conformance/case.ts";
import { code, digestOf, readAll, readName, sameBytes, upload, type Lab } from "#e2e/conformance/lab.ts";
import { treeOf } from "#e2e/conformance/trees.ts";

const made = async (lab: Lab, line: string, command: Partial<Command>): Promise<ActionResult> =>
  (await ranWell(lab, await sh(lab, line, { command }))).result;

/** The tree of an output directory, and the bytes that it came in. */
async function treeAt(lab: Lab, { outputDirectories }: ActionResult, path: string) {
  const treeDigest = outputDirectories.find((one) => one.path === path)?.treeDigest;
  ok(treeDigest, `there is no tree of ${path}`);
  const bytes = await readAll(lab, readName(lab, treeDigest));
  return { bytes, tree: decode(Tree, bytes), treeDigest };
}

const pathsOf = (all: readonly { readonly path: string }[]): readonly string[] =>
  all.map(({ path }) => path).toSorted();

/** The messages of a Tree in its bytes: their tags, and each one's own bytes. */
function partsOf(bytes: Buffer): readonly { readonly tag: number; readonly bytes: Buffer }[] {
  const parts = [];
  for (let from = 0; from < bytes.length;) {
    const tag = bytes[from] ?? 0;
    let length = 0;
    let shift = 0;
    for (from += 1; ; from += 1, shift += 7) {
      const byte = bytes[from] ?? 0;
      length += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    parts.push({ tag, bytes: bytes.subarray(from + 1, from + 1 + length) });
    from += 1 + length;
  }
  return parts;
}

const nested =
  "mkdir -p d/a/x d/b/x d/empty && echo 1 > d/a/x/f && echo 1 > d/b/x/f && echo 2 > d/top && ln -s top d/l";

export const outputCases: readonly Case[] = [
  onWorkers(71, "entries are in the order of their bytes, not of UTF-16", async (lab) => {
    // In UTF-8 the first comes before the second; in UTF-16, after it.
    const [first, second] = ["\uff5e", "\u{1f600}"];
    const line = `for n in '${second}' b '${first}' B; do touch "d/f$n"; mkdir "d/d$n"; ln -s x "d/l$n"; done`;
    const { tree } = await treeAt(lab, await made(lab, `mkdir d && ${line}`, { outputPaths: ["d"] }), "d");
    const sorted = ["B", "b", first, second];
    const namesOf = (all: readonly { readonly name: string }[] = []): string[] => all.map(({ name }) => name);
    deepEqual(
      namesOf(tree.root?.files),
      sorted.map((name) => `f${name}`),
    );
    deepEqual(
      namesOf(tree.root?.directories),
      sorted.map((name) => `d${name}`),
    );
    deepEqual(
      namesOf(tree.root?.symlinks),
      sorted.map((name) => `l${name}`),
    );
  }),
  onWorkers(72, "what was made executable is told so", async (lab) => {
    const line = "echo > plain; echo > run; chmod 755 run; echo > own; chmod 700 own";
    const { outputFiles } = await made(lab, line, { outputPaths: ["own", "plain", "run"] });
    const told = Object.fromEntries(outputFiles.map(({ path, isExecutable }) => [path, isExecutable]));
    deepEqual(told, { own: true, plain: false, run: true });
  }),
  onWorkers(77, "output_paths go before the older fields", async (lab) => {
    const command = { outputPaths: ["a"], outputFiles: ["b"], outputDirectories: ["c"] };
    const result = await made(lab, "echo > a; echo > b; mkdir c", command);
    deepEqual([pathsOf(result.outputFiles), pathsOf(result.outputDirectories)], [["a"], []]);
  }),
  onWorkers(77, "the older fields work", async (lab) => {
    const command = { outputFiles: ["b", "x/b"], outputDirectories: ["c"] };
    const result = await made(lab, "echo > b; echo > x/b; mkdir c", command);
    deepEqual([pathsOf(result.outputFiles), pathsOf(result.outputDirectories)], [["b", "x/b"], ["c"]]);
  }),
  onWorkers(77, "a directory that should be a file is told, and the other way round", async (lab) => {
    const dir = await sh(lab, "mkdir o", { command: { outputFiles: ["o"] } });
    await refused(lab, dir, [code.precondition], "a directory for a file");
    const file = await sh(lab, "echo > o", { command: { outputDirectories: ["o"] } });
    await refused(lab, file, [code.precondition], "a file for a directory");
  }),
  onWorkers(77, "the empty path is the working directory as a whole", async (lab) => {
    const result = await made(lab, "echo 1 > f; mkdir d", { outputPaths: [""] });
    const { tree } = await treeAt(lab, result, "");
    deepEqual([tree.root?.files[0]?.name, tree.root?.directories[0]?.name], ["f", "d"]);
  }),
  onWorkers(78, "outputs that are not there are left out, and nothing more", async (lab) => {
    const result = await made(lab, "echo > a", { outputPaths: ["a", "missing", "far/away"] });
    deepEqual([pathsOf(result.outputFiles), result.outputDirectories.length], [["a"], 0]);
  }),
  ...["mkfifo o", "mkdir o && mkfifo o/p"].map((line) =>
    onWorkers(78, `nobody waits for a pipe: ${line}`, async (lab) => {
      const { response, result } = await run(lab, await sh(lab, line, { command: { outputPaths: ["o"] } }));
      const got = response.status?.code ?? 0;
      ok([0, code.precondition].includes(got), `its status is ${got}`);
      deepEqual(result.outputFiles, []);
    }),
  ),
  onWorkers(79, "links are told as links, whatever they lead to", async (lab) => {
    const line = "echo > f; mkdir d; ln -s f to-file; ln -s d to-dir; ln -s nowhere dangling; ln -s ../f sub/up";
    const command = { outputPaths: ["dangling", "sub/up", "to-dir", "to-file"] };
    const result = await made(lab, line, command);
    deepEqual([result.outputFiles, result.outputDirectories], [[], []]);
    const told = result.outputSymlinks.map(({ path, target }) => `${path} -> ${target}`).toSorted();
    deepEqual(told, ["dangling -> nowhere", "sub/up -> ../f", "to-dir -> d", "to-file -> f"]);
    for (const { path, target } of [...result.outputFileSymlinks, ...result.outputDirectorySymlinks])
      ok(told.includes(`${path} -> ${target}`), `the older fields say the same of ${path}`);
  }),
  onWorkers(79, "of older requests, links are told in older words, too", async (lab) => {
    const command = { outputFiles: ["to-file"], outputDirectories: ["to-dir"] };
    const result = await made(lab, "echo > f; mkdir d; ln -s f to-file; ln -s d to-dir", command);
    deepEqual(pathsOf(result.outputFileSymlinks), ["to-file"]);
    deepEqual(pathsOf(result.outputDirectorySymlinks), ["to-dir"]);
  }),
  onWorkers(79, "a link to an absolute path is told, or refused where the server says so", async (lab) => {
    const action = await sh(lab, "ln -s /etc/hostname o", { command: { outputPaths: ["o"] } });
    if (lab.capabilities.cacheCapabilities?.symlinkAbsolutePathStrategy !== Strategy.ALLOWED)
      return refused(lab, action, [code.precondition], "an absolute link");
    const { result } = await ranWell(lab, action);
    equal(result.outputSymlinks[0]?.target, "/etc/hostname");
  }),
  onWorkers(79, "an output that a link leads to outside is nobody's business", async (lab) => {
    const command = { outputPaths: ["l/passwd", "l/hostname"] };
    const { result } = await run(lab, await sh(lab, "rmdir l; ln -s /etc l", { command }));
    deepEqual(result.outputFiles, []);
  }),
  onWorkers(80, "a tree has every directory once, under the digest of the bytes that are in it", async (lab) => {
    const { bytes, tree } = await treeAt(lab, await made(lab, nested, { outputPaths: ["d"] }), "d");
    const parts = partsOf(bytes);
    deepEqual(
      parts.map(({ tag }) => tag).toSorted((a, b) => a - b),
      [0x0a, ...parts.slice(1).map(() => 0x12)],
    );
    const children = parts.filter(({ tag }) => tag === 0x12).map((part) => digestOf(part.bytes).hash);
    equal(new Set(children).size, children.length, "each once");
    const named = [tree.root, ...tree.children].flatMap((one) => one?.directories ?? []);
    deepEqual(new Set(named.map(({ digest }) => digest?.hash)), new Set(children));
    equal(tree.root?.symlinks[0]?.target, "top");
    for (const { tag, bytes: own } of parts)
      sameBytes(own, encode(Directory, decode(Directory, own)), tag === 0x0a ? "the root" : "a child");
  }),
  onWorkers(80, "a tree that says it is sorted is: the root first, parents before their children", async (lab) => {
    const result = await made(lab, nested, { outputPaths: ["d"] });
    const [directory] = result.outputDirectories;
    ok(directory, "the output");
    needs(directory.isTopologicallySorted, "a server that says its trees are sorted");
    const [root, ...children] = partsOf((await treeAt(lab, result, "d")).bytes);
    equal(root?.tag, 0x0a);
    const known = new Set<string>();
    for (const [i, part] of [root, ...children].entries()) {
      ok(part && (i === 0 || known.has(digestOf(part.bytes).hash)), "a child comes after one that names it");
      for (const { digest } of decode(Directory, part.bytes).directories) known.add(digest?.hash ?? "");
    }
  }),
  onWorkers(80, "an empty directory is a tree with an empty root", async (lab) => {
    const { bytes } = await treeAt(lab, await made(lab, "mkdir d", { outputPaths: ["d"] }), "d");
    deepEqual([...bytes], [0x0a, 0x00]);
  }),
  onWorkers(80, "the same files are the same tree, in whatever order they were made", async (lab) => {
    const fill = (numbers: string): string => `for i in ${numbers}; do echo $i > d/f$i; echo $i > d/x/$i; done`;
    const forth = `mkdir d d/x d/y; ${fill("1 2 3 4 5")}`;
    const back = `mkdir d d/y d/x; ${fill("5 4 3 2 1")}`;
    const digests = [];
    for (const line of [forth, back])
      digests.push((await treeAt(lab, await made(lab, line, { outputPaths: ["d"] }), "d")).treeDigest);
    deepEqual(digests[0], digests[1]);
  }),
  ...(["DIRECTORY_ONLY", "TREE_AND_DIRECTORY"] as const).map((format) =>
    onWorkers(81, `${format}: every directory is a blob, and the root's digest is told`, async (lab) => {
      needs(versionOf(lab) >= 208, "a server of version 2.8");
      const command = { outputPaths: ["d"], outputDirectoryFormat: Format[format] };
      const result = await made(lab, nested, command);
      const [{ rootDirectoryDigest, treeDigest } = {}] = result.outputDirectories;
      ok(rootDirectoryDigest, "root_directory_digest");
      const directories = new Set((await treeOf(lab, rootDirectoryDigest)).map((bytes) => digestOf(bytes).hash));
      equal(directories.size, 4, "d, a which is b, the x of both, empty");
      if (format === "TREE_AND_DIRECTORY") ok(treeDigest, "and the tree's, too");
      if (!treeDigest) return;
      const [root] = partsOf(await readAll(lab, readName(lab, treeDigest)));
      deepEqual(digestOf(root?.bytes ?? Buffer.alloc(0)), rootDirectoryDigest);
    }),
  ),
  onWorkers(82, "properties are told only where asked for", async (lab) => {
    const { outputFiles } = await made(lab, "echo > o", { outputPaths: ["o"] });
    const [file] = outputFiles;
    ok(file, "the output");
    deepEqual(file.nodeProperties ?? { properties: [] }, { properties: [] });
  }),
  onWorkers(82, "properties that are asked for are told, of files, and of files in trees", async (lab) => {
    const known = lab.capabilities.executionCapabilities?.supportedNodeProperties ?? [];
    needs(known.includes("mtime") && known.includes("unix_mode"), "a server that knows mtime and unix_mode");
    const line = "echo > o; mkdir d; echo > d/f; chmod 640 o d/f; touch -d @1000000000 o d/f";
    const command = { outputPaths: ["d", "o"], outputNodeProperties: ["mtime", "unix_mode"] };
    const result = await made(lab, line, command);
    const { tree } = await treeAt(lab, result, "d");
    for (const told of [result.outputFiles[0]?.nodeProperties, tree.root?.files[0]?.nodeProperties])
      deepEqual([told?.mtime?.seconds, told?.unixMode?.value], [1_000_000_000, 0o640]);
  }),
  onWorkers(82, "a property that nobody knows is refused", async (lab) => {
    const command = { outputPaths: ["o"], outputNodeProperties: ["colour"] };
    await refused(lab, await sh(lab, "true", { command }), [code.invalid], "Execute");
  }),
  onWorkers(82, "inputs have the time and the mode that they are given, and the same time otherwise", async (lab) => {
    const known = lab.capabilities.executionCapabilities?.supportedNodeProperties ?? [];
    const times = [];
    for (let time = 0; time < 2; time += 1) {
      const { result } = await ranWell(lab, await sh(lab, "stat -c %Y f", { inputs: { f: "x" } }));
      times.push(await printed(lab, result, "stdout"));
    }
    equal(times[0], times[1], "the time of an input that says none is always the same");
    needs(known.includes("mtime"), "a server that knows mtime");
    const properties = { properties: [], mtime: { seconds: 1_234_567_890, nanos: 0 }, unixMode: { value: 0o500 } };
    const file = { name: "f", digest: digestOf(Buffer.from("x")), isExecutable: true, nodeProperties: properties };
    const root = await upload(lab, encode(Directory, { files: [file], directories: [], symlinks: [] }));
    const { result } = await ranWell(lab, await sh(lab, "stat -c '%Y %A' f", { root }));
    const told = await printed(lab, result, "stdout");
    ok(told.startsWith("1234567890 -r-x"), told);
  }),
];
