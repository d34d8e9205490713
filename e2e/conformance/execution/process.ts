/** Items 83 to 88: how a command is started, what it sees and prints, how it ends, and what is left of it. */
import { deepEqual, equal, ok } from "node:assert/strict";
import type { ActionResult } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import {
  isCached,
  make,
  onWorkers,
  outputText,
  printed,
  printedBytes,
  ranWell,
  refused,
  run,
  saysWhenToRetry,
  sh,
  type Making,
} from "#e2e/conformance/actions.ts";
import { needs, type Case } from "#e2e/conformance/case.ts";
import { code, fresh, readAll, readName, sameBytes, type Lab } from "#e2e/conformance/lab.ts";

const path = (value: string) => ({ environmentVariables: [{ name: "PATH", value }] });

/** Succeeds, and returns what it printed. */
async function saysOf(lab: Lab, words: readonly string[], making: Making = {}): Promise<string> {
  const { digest } = await make(lab, words, making);
  return await printed(lab, (await ranWell(lab, digest)).result, "stdout");
}

/**
 * A program that cannot be started is the client's mistake, reported one way or the other: never INTERNAL, never as a
 * lost worker.
 */
async function cannotStart(lab: Lab, words: readonly string[], making: Making, exitCode: number): Promise<void> {
  const { digest } = await make(lab, words, making);
  const { response, result } = await run(lab, digest);
  const got = response.status?.code ?? 0;
  ok([0, code.invalid, code.precondition].includes(got), `its status is ${got}: ${response.status?.message}`);
  if (got === 0) equal(result.exitCode, exitCode, `the exit code of ${words.join(" ")}`);
  equal(await isCached(lab, digest), false);
}

/** Shells and sandboxes set these by themselves. */
const harmless = new Set(["PWD", "OLDPWD", "SHLVL", "_", "HOME", "TMPDIR", "TMP", "TEMP", "LC_ALL", "LANG", "USER"]);

const script = "#!/bin/sh\necho ran $0\n";

const signals: Readonly<Record<string, number>> = { TERM: 143, KILL: 137, SEGV: 139, ABRT: 134 };

const pathsOf = ({ outputFiles }: ActionResult): readonly string[] => outputFiles.map((file) => file.path);

export const processCases: readonly Case[] = [
  onWorkers(83, "a program is found by its absolute path, from the working directory, and on the PATH", async (lab) => {
    equal(await saysOf(lab, ["/bin/echo", "a"]), "a\n");
    equal(await saysOf(lab, ["echo", "b"], { command: path("/nowhere:/bin:/usr/bin") }), "b\n");
    const inputs = { "tools/run*": script, "sub/x": "" };
    equal(await saysOf(lab, ["tools/run"], { inputs, command: path("/bin") }), "ran tools/run\n");
    equal(await saysOf(lab, ["./run"], { inputs, command: { workingDirectory: "tools" } }), "ran ./run\n");
    const command = { workingDirectory: "sub", ...path("/bin") };
    equal(await saysOf(lab, ["../tools/run"], { inputs, command }), "ran ../tools/run\n");
  }),
  onWorkers(83, "the PATH is the command's own, not the worker's", (lab) =>
    cannotStart(lab, ["echo", "found"], { command: path("/nowhere") }, 127),
  ),
  onWorkers(83, "a program that is not there or cannot be run is the command's failure", async (lab) => {
    await cannotStart(lab, ["./nothing"], {}, 127);
    await cannotStart(lab, ["no-such-program-anywhere"], {}, 127);
    await cannotStart(lab, ["./plain"], { inputs: { plain: script } }, 126);
    await cannotStart(lab, ["./folder"], { inputs: { "folder/": "" } }, 126);
  }),
  ...[[], [""]].map((words) =>
    onWorkers(83, `a command of ${words.length} words that names no program is refused`, async (lab) => {
      await refused(lab, (await make(lab, words)).digest, [code.invalid], "Execute");
    }),
  ),
  onWorkers(83, "words are words: nothing is expanded, split or lost", async (lab) => {
    const words = ["a b", "", "$HOME", "*", "'", '"', "\\", "\n", "ü😀", "-n", "--"];
    const { digest } = await make(lab, ["/usr/bin/printf", "<%s>", ...words]);
    const { result } = await ranWell(lab, digest);
    equal(await printed(lab, result, "stdout"), words.map((word) => `<${word}>`).join(""));
  }),
  onWorkers(83, "variables are the command's, and no others that mean anything", async (lab) => {
    const environmentVariables = [
      { name: "A", value: "1 2\n3" },
      { name: "EMPTY", value: "" },
      { name: "PATH", value: "/usr/bin:/bin" },
    ];
    const told = await saysOf(lab, ["/usr/bin/env", "-0"], { command: { environmentVariables } });
    const given = new Map(told.split("\0").flatMap((line) => (line === "" ? [] : [splitAt(line)])));
    for (const { name, value } of environmentVariables) equal(given.get(name), value, name);
    const others = [...given.keys()].filter((name) => !["A", "EMPTY", "PATH"].includes(name) && !harmless.has(name));
    deepEqual(others, []);
  }),
  onWorkers(83, "a variable that is set twice is refused", async (lab) => {
    const environmentVariables = ["1", "2"].map((value) => ({ name: "A", value }));
    await refused(lab, await sh(lab, "true", { command: { environmentVariables } }), [code.invalid], "Execute");
  }),
  onWorkers(84, "exit codes are told as they are, and only 0 is cached", async (lab) => {
    for (const exitCode of [0, 1, 42, 255]) {
      const action = await sh(lab, `exit ${exitCode}`);
      const { response, result } = await run(lab, action);
      deepEqual([response.status?.code ?? 0, result.exitCode], [0, exitCode]);
      equal(await isCached(lab, action), exitCode === 0);
    }
  }),
  ...Object.entries(signals).map(([name, exitCode]) =>
    onWorkers(84, `a command that SIG${name} ended has the exit code ${exitCode}`, async (lab) => {
      const action = await sh(lab, `kill -${name} $$; sleep 5`);
      const { result } = await run(lab, action);
      equal(result.exitCode, exitCode);
      equal(await isCached(lab, action), false);
    }),
  ),
  onWorkers(84, "a command that ran out of memory is told from one that failed, and not cached", async (lab) => {
    const littleMemory = needs(lab.littleMemory, "a property that limits memory");
    const properties = [...lab.platform, littleMemory];
    const line = "head -c 400000000 /dev/zero | tail -c 399999999 > /dev/null";
    const action = await sh(lab, line, { action: { platform: { properties } } });
    const { response, result } = await run(lab, action);
    const { status, message } = response;
    ok((status?.code ?? 0) !== 0 || result.exitCode !== 0, "it ended well");
    if (status && status.code === code.exhausted) ok(saysWhenToRetry(status), "RetryInfo");
    ok(/memory/i.test(`${status?.message} ${message}`), `memory is named: ${status?.message} ${message}`);
    equal(await isCached(lab, action), false);
  }),
  onWorkers(84, "what the server noted of a failed run can be read", async (lab) => {
    const { response } = await run(lab, await sh(lab, "exit 1"));
    needs(response.serverLogs.size > 0, "a server that notes something of runs that fail");
    for (const [name, { digest }] of response.serverLogs) {
      ok(digest, `the log ${name} has a digest`);
      ok((await readAll(lab, readName(lab, digest))).length > 0, `the log ${name} is there`);
    }
  }),
  onWorkers(85, "what is printed comes back byte for byte, in the answer or by its digest", async (lab) => {
    const line = "printf '\\377\\000\\376out'; printf '\\200err' >&2";
    const { result } = await ranWell(lab, await sh(lab, line));
    sameBytes(await printedBytes(lab, result, "stdout"), Buffer.from("ff00fe6f7574", "hex"), "stdout");
    sameBytes(await printedBytes(lab, result, "stderr"), Buffer.from("80657272", "hex"), "stderr");
    ok(result.stdoutDigest && result.stderrDigest, "both have digests, so that the cache can name them");
  }),
  onWorkers(85, "what is printed is in the answer for whoever asks", async (lab) => {
    const asking = { inlineStdout: true, inlineStderr: true, inlineOutputFiles: ["o"] };
    const line = "seq 1 9000; seq 1 9000 >&2; echo made > o";
    const { result } = await ranWell(lab, await sh(lab, line, { command: { outputPaths: ["o"] } }), asking);
    ok(result.stdoutRaw.length > 0, "the wish for it is heeded");
    equal(result.stdoutRaw.length, result.stdoutDigest?.sizeBytes);
    equal(result.stderrRaw.length, result.stderrDigest?.sizeBytes);
    equal(Buffer.from(result.outputFiles[0]?.contents ?? "").toString(), "made\n");
  }),
  onWorkers(85, "where nothing is printed, both streams are told in the same way", async (lab) => {
    const { result } = await ranWell(lab, await sh(lab, "true"));
    deepEqual([result.stdoutRaw.length, result.stderrRaw.length], [0, 0]);
    deepEqual(result.stdoutDigest, result.stderrDigest);
  }),
  onWorkers(85, "of very much, beginning and end are kept at least", async (lab) => {
    const { result } = await ranWell(lab, await sh(lab, "seq 1 10000000"));
    const text = (await printedBytes(lab, result, "stdout")).toString("latin1");
    ok(text.startsWith("1\n2\n3\n"), "the beginning");
    ok(text.endsWith("\n9999999\n10000000\n"), "the end");
    equal(text.length, result.stdoutDigest?.sizeBytes);
  }),
  onWorkers(86, "what a command leaves running is ended with it", async (lab) => {
    const started = Date.now();
    const line = "(sleep 2; echo late > late) & (setsid sleep 40 &) ; echo now > o";
    const { result } = await ranWell(lab, await sh(lab, line, { command: { outputPaths: ["late", "o"] } }));
    deepEqual(pathsOf(result), ["o"]);
    ok(Date.now() - started < 20_000, "nobody waited for what it left behind");
  }),
  onWorkers(86, "what still writes does not change what was collected", async (lab) => {
    const line = "(while :; do echo more >> o; done) & sleep 0.3; exit 0";
    const { result } = await ranWell(lab, await sh(lab, line, { command: { outputPaths: ["o"] } }));
    ok((await outputText(lab, result, "o")).length > 0);
  }),
  onWorkers(86, "programs among the inputs can be run at once, many at a time", async (lab) => {
    const inputs = { "run*": `#!/bin/sh\n# ${fresh().toString("hex")}\necho ran\n` };
    const all = await Promise.all(Array.from({ length: 16 }, () => saysOf(lab, ["./run"], { inputs })));
    deepEqual(new Set(all), new Set(["ran\n"]));
  }),
  onWorkers(87, "outputs may be other names of inputs, or of each other", async (lab) => {
    const text = fresh().toString("hex");
    const line = "cp in a; ln a b; ln in c 2>/dev/null || cp in c; mkdir d; ln a d/e";
    const making = { inputs: { in: text }, command: { outputPaths: ["a", "b", "c", "d"] } };
    const { result } = await ranWell(lab, await sh(lab, line, making));
    for (const name of ["a", "b", "c"]) equal(await outputText(lab, result, name), text);
    equal(result.outputDirectories.length, 1);
  }),
  onWorkers(87, "files of holes come back whole", async (lab) => {
    const line = "truncate -s 50000000 o; printf end >> o";
    const { result } = await ranWell(lab, await sh(lab, line, { command: { outputPaths: ["o"] } }));
    const digest = result.outputFiles[0]?.digest;
    ok(digest, "the output");
    equal(digest.sizeBytes, 50_000_003);
    const tail = await readAll(lab, readName(lab, digest), { offset: 49_999_995 });
    sameBytes(tail, Buffer.from("\0\0\0\0\0end"), "its end");
  }),
  onWorkers(87, "an output that may not be read is told, or read all the same", async (lab) => {
    const { response } = await run(lab, await sh(lab, "echo > o; chmod 000 o", { command: { outputPaths: ["o"] } }));
    ok([0, code.precondition].includes(response.status?.code ?? 0), `its status is ${response.status?.code}`);
  }),
  onWorkers(88, "every action begins in a folder with its inputs and nothing else, closed to others", async (lab) => {
    const leave = "mkdir left; chmod 000 left; touch .hidden; touch /tmp/left-behind-$$ 2>/dev/null; true";
    const making = { inputs: { "work/": "" }, command: { workingDirectory: "work" } };
    for (let time = 0; time < 4; time += 1) await ranWell(lab, await sh(lab, leave, making));
    const look = "ls -A; ls -A /tmp | grep left; stat -c %a .. >&2; true";
    const { result } = await ranWell(lab, await sh(lab, look, making));
    equal(await printed(lab, result, "stdout"), "");
    const mode = Number.parseInt(await printed(lab, result, "stderr"), 8);
    equal(mode & 0o007, 0, `others may enter: ${mode.toString(8)}`);
  }),
];

const splitAt = (line: string): readonly [string, string] => {
  const at = line.indexOf("=");
  return [line.slice(0, at), line.slice(at + 1)];
};
