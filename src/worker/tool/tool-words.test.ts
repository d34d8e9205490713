import { deepEqual, equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { expandFlagFiles, toolWords } from "./tool-words.ts";

test("a command is told apart: what the tool is started with, and what is asked of it", () => {
  const cases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ["javac -Xmx1g @a.params", ["javac", "-Xmx1g", "--persistent_worker"], ["@a.params"]],
    ["tool @a --flagfile=b -flagfile=c", ["tool", "--persistent_worker"], ["@a", "--flagfile=b", "-flagfile=c"]],
    ["tool @a --last", ["tool", "--last", "--persistent_worker"], ["@a"]],
    ["@tool @a", ["@tool", "--persistent_worker"], ["@a"]],
  ];
  for (const [command, start, flagFiles] of cases) deepEqual(toolWords(command.split(" ")), { start, flagFiles });
  for (const command of ["javac A.java", "@tool", "tool @", "tool --flagfile="])
    equal(toolWords(command.split(" ")), undefined, command);
});

const filesOf = (files: Readonly<Record<string, string>>) => (path: string) =>
  Promise.resolve(Object.hasOwn(files, path) ? Buffer.from(files[path] ?? "") : undefined);

test("flag files become their lines, and those of the files that are named in there", async () => {
  const read = filesOf({ "a/p": "--one\n@b\r\n\n--two", b: "three four\n@@five\n@six//seven:eight", empty: "" });
  deepEqual(await expandFlagFiles(["@a/p"], read), ["--one", "three four", "@@five", "@six//seven:eight", "--two"]);
  deepEqual(await expandFlagFiles(["@empty", "--flagfile=b"], read), ["--flagfile=b"]);
});

test("flag files without end, or that are not there, are refused", async () => {
  await rejects(expandFlagFiles(["@a"], filesOf({ a: "@a" })), /too deep/);
  await rejects(expandFlagFiles(["@a"], filesOf({ a: "x\n@b" })), /no input of that name/);
  const twice = filesOf({ a: "@b\n@b", b: "@c\n@c", c: "x\nx\nx" });
  await rejects(expandFlagFiles(["@a"], twice, { depthMax: 8, wordsMax: 10 }), /too many words/);
});

test("whatever words are in a flag file, they are asked in their order", async () => {
  const word = fc.string({ minLength: 1 }).filter((text) => !/[\r\n]/.test(text) && !text.startsWith("@"));
  await fc.assert(
    fc.asyncProperty(fc.array(word), async (words) => {
      deepEqual(await expandFlagFiles(["@f"], filesOf({ f: words.join("\n") })), words);
    }),
  );
});
