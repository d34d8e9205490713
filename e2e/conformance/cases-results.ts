/** Items 37 to 45: the action cache. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { Capabilities, type ActionResult } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { rawActionResult } from "#wire/raw-message.ts";
import { at, needs, type Case } from "./case.ts";
import {
  code,
  codeOf,
  digestOf,
  ends,
  fresh,
  freshAction,
  freshText,
  functionNumbers,
  getActionResult,
  hasFunction,
  nothing,
  outputFile,
  readAll,
  readName,
  result,
  sameBytes,
  update,
  upload,
  type Lab,
} from "./lab.ts";
import { directory, fileNode, tree } from "./trees.ts";

/** Refused for good, or accepted and never served. */
async function neverServed(lab: Lab, partial: Partial<ActionResult>): Promise<void> {
  const action = freshAction();
  await ends(update(lab, action, partial), [0, code.precondition, code.invalid, code.notFound], "UpdateActionResult");
  await ends(result(lab, action), code.notFound, "GetActionResult");
}

const outputDirectory = (path: string, treeDigest: ReturnType<typeof digestOf> | undefined) => ({
  path,
  treeDigest,
  isTopologicallySorted: false,
});

const pathAndDigest = ({ path, digest }: Pick<ActionResult["outputFiles"][number], "path" | "digest">) =>
  `${path} ${digest?.hash} ${digest?.sizeBytes}`;

export const resultCases: readonly Case[] = [
  at(37, "a result is served while everything that it names is there", async (lab) => {
    const inTree = await upload(lab, fresh());
    const child = directory({ files: [fileNode("deep", inTree)] });
    const root = directory({ files: [fileNode("f", nothing)], directories: { child } });
    const treeDigest = await upload(lab, tree(root, [child]));
    const action = freshAction();
    await update(lab, action, {
      outputFiles: [outputFile("out/a.o", await upload(lab, fresh())), outputFile("out/empty", nothing)],
      outputDirectories: [outputDirectory("out/dir", treeDigest)],
      stdoutDigest: await upload(lab, fresh()),
      stderrDigest: nothing,
    });
    const found = await result(lab, action);
    deepEqual(
      found.outputFiles.map(({ path }) => path),
      ["out/a.o", "out/empty"],
    );
    deepEqual(found.outputDirectories[0]?.treeDigest, treeDigest);
  }),
  at(37, "a result whose file is missing is not served", async (lab) => {
    await neverServed(lab, { outputFiles: [outputFile("a", digestOf(fresh()))] });
  }),
  at(37, "a result whose standard output or error is missing is not served", async (lab) => {
    await neverServed(lab, { stdoutDigest: digestOf(fresh()) });
    await neverServed(lab, { stderrDigest: digestOf(fresh()) });
  }),
  at(37, "a result whose tree is missing is not served", async (lab) => {
    await neverServed(lab, { outputDirectories: [outputDirectory("d", digestOf(fresh()))] });
  }),
  at(37, "a result is not served when a file within its tree is missing", async (lab) => {
    for (const depth of ["root", "child"]) {
      const lost = directory({ files: [fileNode("lost", digestOf(fresh()))] });
      const bytes = depth === "root" ? tree(lost) : tree(directory({ directories: { lost } }), [lost]);
      await neverServed(lab, { outputDirectories: [outputDirectory("d", await upload(lab, bytes))] });
    }
  }),
  at(37, "a result is not served when something below its root directory is missing", async (lab) => {
    const lost = directory({ files: [fileNode("lost", digestOf(fresh()))] });
    const root = directory({ directories: { lost } });
    await upload(lab, lost);
    const rootDirectoryDigest = await upload(lab, root);
    const treeDigest = await upload(lab, tree(root, [lost]));
    const one = { ...outputDirectory("d", treeDigest), rootDirectoryDigest };
    await neverServed(lab, { outputDirectories: [one] });
  }),
  at(38, "a result that cannot be one is refused, and never served", async (lab) => {
    await neverServed(lab, { outputFiles: [outputFile("a", { hash: "xyz", sizeBytes: 3 })] });
    await neverServed(lab, { outputFiles: [{ ...outputFile("a", nothing), digest: undefined }] });
    const noTree = await upload(lab, Buffer.concat([Buffer.from([0xff, 0xff]), fresh(50)]));
    await neverServed(lab, { outputDirectories: [outputDirectory("d", noTree)] });
  }),
  at(38, "what nobody knows is not found", (lab) => ends(result(lab, freshAction()), code.notFound, "GetActionResult")),
  at(39, "a result with nothing in it is not served as no bytes", async (lab) => {
    const action = freshAction();
    if ((await codeOf(update(lab, action, {}))) === code.invalid) return; // refused: fine, too
    const request = { instanceName: lab.instance, actionDigest: action, inlineStdout: false, inlineStderr: false };
    const method = { ...getActionResult, response: rawActionResult };
    const bytes = await lab.client.unary(method, { ...request, inlineOutputFiles: [], digestFunction: 0 });
    ok(bytes.length > 0, "no bytes: some clients take that for a miss");
  }),
  at(40, "outputs are in the result only for who asked, and their digests always", async (lab) => {
    const [stdout, stderr, file, other] = [fresh(1_000), fresh(1_001), fresh(1_002), fresh(1_003)];
    const action = freshAction();
    await update(lab, action, {
      outputFiles: [outputFile("x/a", await upload(lab, file)), outputFile("x/b", await upload(lab, other))],
      stdoutDigest: await upload(lab, stdout),
      stderrDigest: await upload(lab, stderr),
    });
    const plain = await result(lab, action);
    equal(plain.stdoutRaw.length + plain.stderrRaw.length + (plain.outputFiles[0]?.contents.length ?? 0), 0);
    const full = await result(lab, action, { stdout: true, stderr: true, files: ["x/a", "x", "a"] });
    sameBytes(full.stdoutRaw, stdout, "stdout");
    sameBytes(full.stderrRaw, stderr, "stderr");
    sameBytes(full.outputFiles[0]?.contents ?? Buffer.alloc(0), file, "x/a");
    equal(full.outputFiles[1]?.contents.length, 0, "x/b was not asked for");
    deepEqual(full.stdoutDigest, digestOf(stdout));
    deepEqual(full.outputFiles[0]?.digest, digestOf(file));
  }),
  at(40, "what does not fit into a message is left out, the standard output last", async (lab) => {
    const [stdout, file] = [freshText(3_000_000), freshText(3_000_000)];
    const action = freshAction();
    const outputFiles = [outputFile("big", await upload(lab, file))];
    await update(lab, action, { outputFiles, stdoutDigest: await upload(lab, stdout) });
    const full = await result(lab, action, { stdout: true, files: ["big"] });
    sameBytes(full.stdoutRaw, stdout, "stdout");
    equal(full.outputFiles[0]?.contents.length, 0);
    deepEqual(full.outputFiles[0]?.digest, digestOf(file));
  }),
  at(41, "a standard output that came within the result is found by its digest", async (lab) => {
    const action = freshAction(); // which was never uploaded
    const stdoutRaw = fresh(500);
    await update(lab, action, { stdoutRaw });
    const found = await result(lab, action, { stdout: true });
    sameBytes(found.stdoutRaw, stdoutRaw, "stdout");
    const digest = (await result(lab, action)).stdoutDigest;
    deepEqual(digest, digestOf(stdoutRaw), "its digest");
    sameBytes(await readAll(lab, readName(lab, digestOf(stdoutRaw))), stdoutRaw, "Read");
  }),
  ...["/abs", "a//b", "a/./b", "a/../b", ""].map((path) =>
    at(41, `an output at "${path}" is refused`, async (lab) => {
      await ends(update(lab, freshAction(), { outputFiles: [outputFile(path, nothing)] }), code.invalid, "Update");
    }),
  ),
  at(42, "who may not write results is refused, and is told beforehand", async (lab) => {
    const client = needs(lab.reader, "the name of somebody who may only read");
    const action = freshAction();
    await ends(update(lab, action, { exitCode: 0 }, { client }), code.denied, "UpdateActionResult");
    const { getCapabilities } = Capabilities.methods;
    const capabilities = await client.unary(getCapabilities, { instanceName: lab.instance });
    equal(capabilities.cacheCapabilities?.actionCacheUpdateCapabilities?.updateEnabled ?? false, false);
    await ends(result(lab, action), code.notFound, "GetActionResult");
  }),
  at(42, "an update answers what is stored", async (lab) => {
    const action = freshAction();
    const outputFiles = [outputFile("a", await upload(lab, fresh()))];
    const answered = await update(lab, action, { outputFiles, exitCode: 0 });
    deepEqual(answered, await result(lab, action));
    deepEqual(answered.outputFiles.map(pathAndDigest), outputFiles.map(pathAndDigest));
  }),
  at(43, "an update that names what is missing is refused, or never served", async (lab) => {
    const there = outputFile("a", await upload(lab, fresh()));
    await neverServed(lab, { outputFiles: [there, outputFile("b", digestOf(fresh()))] });
  }),
  at(44, "instances have results of their own", async (lab) => {
    const action = freshAction();
    const outputFiles = [outputFile("a", await upload(lab, fresh()))];
    await update(lab, action, { outputFiles });
    const instance = `${lab.instance === "" ? "" : `${lab.instance}-`}other-${randomUUID()}`;
    await ends(result(lab, action, { instance }), [code.notFound, code.denied], "GetActionResult in another");
  }),
  at(44, "digest functions have results of their own", async (lab) => {
    needs(hasFunction(lab, "blake3"), "a server of two functions of one length");
    const action = freshAction();
    await update(lab, action, { outputFiles: [outputFile("a", nothing)] });
    const digestFunction = functionNumbers.blake3;
    await ends(result(lab, action, { digestFunction }), code.notFound, "GetActionResult by BLAKE3");
  }),
  at(45, "the last update counts, and one that was refused changes nothing", async (lab) => {
    const action = freshAction();
    const [one, two] = [outputFile("a", await upload(lab, fresh())), outputFile("b", await upload(lab, fresh()))];
    await update(lab, action, { outputFiles: [one] });
    await update(lab, action, { outputFiles: [two] });
    deepEqual((await result(lab, action)).outputFiles.map(pathAndDigest), [pathAndDigest(two)]);
    const lost = { outputFiles: [outputFile("c", digestOf(fresh()))] };
    const kept = (await codeOf(update(lab, action, lost))) !== 0;
    if (kept) deepEqual((await result(lab, action)).outputFiles.map(pathAndDigest), [pathAndDigest(two)]);
    else await ends(result(lab, action), code.notFound, "GetActionResult");
  }),
];
