import { deepEqual, equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { expandFlagFiles, toolArguments } from "./tool-arguments.ts";

test("a command is split into the tool's arguments and the request's", () => {
  const cases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ["javac -Xmx1g @a.params", ["javac", "-Xmx1g", "--persistent_worker"], ["@a.params"]],
    ["tool @a --flagfile=b -flagfile=c", ["tool", "--persistent_worker"], ["@a", "--flagfile=b", "-flagfile=c"]],
    ["tool @a --last", ["tool", "--last", "--persistent_worker"], ["@a"]],
    ["@tool @a", ["@tool", "--persistent_worker"], ["@a"]],
  ];
  for (const [command, start, flagFiles] of cases) deepEqual(toolArguments(command.split(" ")), { start, flagFiles });
  for (const command of ["javac A.java", "@tool", "tool @", "tool --flagfile="])
    equal(toolArguments(command.split(" ")), undefined, command);
});

const filesOf = (files: Readonly<Record<string, string>>) => (path: string) =>
  Promise.resolve(Object.hasOwn(files, path) ? Buffer.from(files[path] ?? "") : undefined);

test("flag files are replaced by their lines, recursively", async () => {
  const read = filesOf({ "a/p": "--one\n@b\r\n\n--two", b: "three four\n@@five\n@six//seven:eight", empty: "" });
  deepEqual(await expandFlagFiles(["@a/p"], read), ["--one", "three four", "@@five", "@six//seven:eight", "--two"]);
  deepEqual(await expandFlagFiles(["@empty", "--flagfile=b"], read), ["--flagfile=b"]);
});

test("endless or missing flag files are refused", async () => {
  await rejects(expandFlagFiles(["@a"], filesOf({ a: "@a" })), /too deep/);
  await rejects(expandFlagFiles(["@a"], filesOf({ a: "x\n@b" })), /no input of that name/);
  const twice = filesOf({ a: "@b\n@b", b: "@c\n@c", c: "x\nx\nx" });
  await rejects(expandFlagFiles(["@a"], twice, { depthMax: 8, argumentsMax: 10 }), /too many arguments/);
});

test("arguments of a flag file keep their order", async () => {
  const word = fc.string({ minLength: 1 }).filter((text) => !/[\r\n]/.test(text) && !text.startsWith("@"));
  await fc.assert(
    fc.asyncProperty(fc.array(word), async (words) => {
      deepEqual(await expandFlagFiles(["@f"], filesOf({ f: words.join("\n") })), words);
    }),
  );
});
