/** Items 70 to 76: names, input trees, and the working directory. */
import { deepEqual, equal, ok } from "node:assert/strict";
import {
  Directory,
  SymlinkAbsolutePathStrategy_Value as Strategy,
  type Digest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { encode } from "#wire/message.ts";
import { onWorkers, outputText, printed, putAll, ranWell, refused, run, sh } from "#e2e/conformance/actions.ts";
import type { Case } from "#e2e/conformance/case.ts";
import { code, digestOf, fresh, nothing, upload, type Lab } from "#e2e/conformance/lab.ts";
import { fileNode } from "#e2e/conformance/trees.ts";

type Content = Partial<Parameters<typeof encode<Directory>>[1]>;

const bytesOf = (content: Content): Buffer =>
  encode(Directory, { files: [], directories: [], symlinks: [], ...content });
const rootOf = (lab: Lab, content: Content): Promise<Digest> => upload(lab, bytesOf(content));

const badNames = ["", ".", "..", "a/b", "/a", "a\0b"];
const emptyNode = (name: string) => ({ name, digest: nothing });
const twice: Readonly<Record<string, Content>> = {
  "two files": { files: [fileNode("a", nothing), fileNode("a", nothing)] },
  "a file and a directory": { files: [fileNode("a", nothing)], directories: [emptyNode("a")] },
  "a file and a link": { files: [fileNode("a", nothing)], symlinks: [{ name: "a", target: "b" }] },
  "a directory and a link": { directories: [emptyNode("a")], symlinks: [{ name: "a", target: "b" }] },
};

const said = async (lab: Lab, line: string, making: Parameters<typeof sh>[2] = {}): Promise<string> =>
  await printed(lab, (await ranWell(lab, await sh(lab, line, making))).result, "stdout");

/** A directory that contains the one below it many times, and so on. */
async function bomb(lab: Lab, levels: number, wide: number): Promise<Digest> {
  const all = [bytesOf({ files: [fileNode("f", nothing)] })];
  for (let level = 0; level < levels; level += 1) {
    const digest = digestOf(all.at(-1) ?? Buffer.alloc(0));
    all.push(bytesOf({ directories: Array.from({ length: wide }, (_, i) => ({ name: `d${i}`, digest })) }));
  }
  await putAll(lab, all);
  return digestOf(all.at(-1) ?? Buffer.alloc(0));
}

const isRefusal = [code.invalid, code.precondition, code.exhausted];

export const inputCases: readonly Case[] = [
  ...badNames.map((name) =>
    onWorkers(70, `no input is called ${JSON.stringify(name)}`, async (lab) => {
      const kinds: readonly Content[] = [
        { files: [fileNode(name, nothing)] },
        { directories: [emptyNode(name)] },
        { symlinks: [{ name, target: "x" }] },
      ];
      for (const kind of kinds)
        await refused(lab, await sh(lab, "true", { root: await rootOf(lab, kind) }), [code.invalid], "Execute");
    }),
  ),
  ...Object.entries(twice).map(([what, content]) =>
    onWorkers(70, `${what} cannot have one name`, async (lab) => {
      const root = await rootOf(lab, content);
      await refused(lab, await sh(lab, "true", { root }), [code.invalid], "Execute");
    }),
  ),
  onWorkers(70, "an output whose name is not UTF-8 is told, not mangled", async (lab) => {
    const line = "mkdir d && touch \"d/$(printf 'a\\377b')\"";
    const { response } = await run(lab, await sh(lab, line, { command: { outputPaths: ["d"] } }));
    equal(response.status?.code, code.precondition, response.status?.message ?? "");
    ok((response.status?.message ?? "") !== "", "with words");
  }),
  onWorkers(70, "names of any other characters come and go", async (lab) => {
    const names = ["ä", "日本", "😀", "a b", "-n", "*", "'", "\\", "\n", "~", "%2f", "con"];
    const inputs = Object.fromEntries(names.map((name) => [`in/${name === "*" ? "**" : name}`, `<${name}>`]));
    const action = await sh(lab, "mkdir out && cp in/* out/", { inputs, command: { outputPaths: ["out"] } });
    const { result } = await ranWell(lab, action);
    equal(result.outputDirectories.length, 1);
    equal(await said(lab, "ls -1A in | wc -l", { inputs }), `${names.length + 1}\n`, "one of them has a line break");
  }),
  onWorkers(72, "what is executable is, what is not is not, of one and the same bytes", async (lab) => {
    const script = "#!/bin/sh\necho ran\n";
    const inputs = { "run*": script, plain: script };
    equal(await said(lab, "./run; ./plain 2>/dev/null || echo refused", { inputs }), "ran\nrefused\n");
  }),
  onWorkers(72, "an action cannot change what others are given", async (lab) => {
    const bytes = fresh().toString("hex");
    const spoil = "chmod u+w in 2>/dev/null; echo spoiled >> in; echo spoiled > in; rm -f in; echo spoiled > in; true";
    for (const line of [spoil, "dd if=/dev/zero of=in bs=1 count=10 conv=notrunc; true"])
      await run(lab, await sh(lab, line, { inputs: { in: bytes } }));
    equal(await said(lab, "cat in", { inputs: { in: bytes } }), bytes);
    const copy = await sh(lab, "cp in o", { inputs: { in: bytes }, command: { outputPaths: ["o"] } });
    equal(await outputText(lab, (await ranWell(lab, copy)).result, "o"), bytes);
  }),
  onWorkers(73, "a directory may be in many places", async (lab) => {
    const root = await rootOf(lab, { directories: [{ name: "in", digest: await bomb(lab, 3, 4) }] });
    equal(await said(lab, "find in -name f | wc -l", { root }), "64\n");
  }),
  onWorkers(73, "a tree that would be endless is refused, and the server goes on", async (lab) => {
    const started = Date.now();
    for (const [levels, wide] of [
      [40, 10],
      [12, 30],
      [3_000, 1],
    ] as const)
      await refused(
        lab,
        await sh(lab, "true", { root: await bomb(lab, levels, wide) }),
        isRefusal,
        `${levels} x ${wide}`,
      );
    ok(Date.now() - started < 30_000, "within a reasonable time");
    await ranWell(lab, await sh(lab, "true"));
  }),
  onWorkers(74, "links are made as they are, whether or not they lead anywhere", async (lab) => {
    const inputs = { "to-file@": "f", f: "x", "nowhere@": "not/here", "up@": "../..", "d/out@": "../f", "d/e/": "" };
    equal(await said(lab, "readlink to-file nowhere up d/out", { inputs }), "f\nnot/here\n../..\n../f\n");
  }),
  onWorkers(74, "a link to an absolute path is made, or refused where the server says so", async (lab) => {
    const strategy = lab.capabilities.cacheCapabilities?.symlinkAbsolutePathStrategy;
    const action = await sh(lab, "readlink abs", { inputs: { "abs@": "/etc/hostname" } });
    if (strategy !== Strategy.ALLOWED) return refused(lab, action, [code.invalid], "Execute with an absolute link");
    equal(await printed(lab, (await ranWell(lab, action)).result, "stdout"), "/etc/hostname\n");
  }),
  onWorkers(74, "nothing is made through a link", async (lab) => {
    const inputs = { "link@": "target", "target/": "" };
    const action = await sh(lab, "ls target", { inputs, command: { outputPaths: ["link/sub/o"] } });
    const { response, result } = await run(lab, action);
    const got = response.status?.code ?? 0;
    ok([0, code.invalid, code.precondition].includes(got), `its status is ${got}: ${response.status?.message}`);
    if (got !== 0) return;
    equal(result.exitCode, 0, "it ran");
    equal(await printed(lab, result, "stdout"), "", "a folder made through the link");
  }),
  onWorkers(75, "the working directory is where the command begins, and what outputs are relative to", async (lab) => {
    const command = { workingDirectory: "a/b", outputPaths: ["o", "sub/o", "../beside"] };
    const line = "cat f > o; echo 2 > sub/o; echo 3 > ../beside; test -f ../../top";
    const action = await sh(lab, line, { inputs: { "a/b/f": "1", top: "t" }, command });
    const { result } = await ranWell(lab, action);
    deepEqual(result.outputFiles.map(({ path }) => path).toSorted(), ["../beside", "o", "sub/o"]);
    equal(await outputText(lab, result, "o"), "1");
  }),
  ...["nowhere", "../up", "/abs", "f", "a/../.."].map((workingDirectory) =>
    onWorkers(75, `nobody can work in ${workingDirectory}`, async (lab) => {
      const action = await sh(lab, "true", { inputs: { f: "x", "a/g": "y" }, command: { workingDirectory } });
      await refused(lab, action, [code.invalid], "Execute");
    }),
  ),
  ...["/abs", "a/", "../x", "a/../../x", "a\0b"].map((path) =>
    onWorkers(75, `nothing is put out at ${JSON.stringify(path)}`, async (lab) => {
      for (const command of [{ outputPaths: [path] }, { outputFiles: [path] }, { outputDirectories: [path] }])
        await refused(lab, await sh(lab, "true", { command }), [code.invalid], "Execute");
    }),
  ),
  onWorkers(76, "what is above an output is made, the output itself is not", async (lab) => {
    const line = "test -d a/b && test ! -e a/b/o && test -d c && test ! -e c/d && echo fine";
    const kinds = [{ outputPaths: ["a/b/o", "c/d"] }, { outputFiles: ["a/b/o"], outputDirectories: ["c/d"] }];
    for (const command of kinds) equal(await said(lab, line, { command }), "fine\n");
  }),
  onWorkers(76, "where a file is above an output, that is told", async (lab) => {
    const action = await sh(lab, "true", { inputs: { a: "file" }, command: { outputPaths: ["a/o"] } });
    await refused(lab, action, [code.precondition, code.invalid], "Execute");
  }),
  onWorkers(76, "an output directory that is among the inputs can be written to", async (lab) => {
    const command = { outputPaths: ["gen/tree", "gen/file"] };
    const line = "echo 1 > gen/tree/f && mkdir gen/tree/sub && echo 2 > gen/file";
    for (let time = 0; time < 2; time += 1) {
      const { result } = await ranWell(lab, await sh(lab, line, { inputs: { "gen/tree/": "" }, command }));
      deepEqual(
        [result.outputDirectories.map(({ path }) => path), result.outputFiles.map(({ path }) => path)],
        [["gen/tree"], ["gen/file"]],
      );
    }
  }),
  onWorkers(76, "an input may be replaced where it is an output, too", async (lab) => {
    const command = { outputPaths: ["f"] };
    const line = "rm -f f; echo new > f";
    const { result } = await ranWell(lab, await sh(lab, line, { inputs: { f: "old" }, command }));
    equal(await outputText(lab, result, "f"), "new\n");
  }),
];
