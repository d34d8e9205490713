import { deepEqual, equal, match } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test, type TestContext } from "node:test";
import { filesToRunAgain, missingRequired } from "./test.ts";
import { entriesFolder, sharingFolder, testProcesses } from "./test-together.ts";

const skipped = [
  { name: "a", reason: "needs postgres: no such package", file: "a.test.ts" },
  { name: "b", reason: "needs bazel: not on the PATH", file: "b.test.ts" },
  { name: "c", reason: "no reason given", file: "c.test.ts" },
];

test("a skip fails the run only if MILLRACE_REQUIRE names what was missing", () => {
  deepEqual(missingRequired(skipped, ""), []);
  deepEqual(missingRequired(skipped, "postgres"), ["postgres"]);
  deepEqual(missingRequired(skipped, "postgres,gradle"), ["postgres"]);
  deepEqual(missingRequired(skipped, "all"), ["postgres", "bazel", "something unnamed"]);
});

test("a few files that failed are run again; many failures, or one of an unknown file, are believed at once", () => {
  const files = ["a.test.ts", "b.test.ts", "c.test.ts"];
  const failed = (...names: readonly string[]) => names.map((file) => ({ file }));
  deepEqual(filesToRunAgain(failed("a.test.ts", "a.test.ts"), files, 1), ["a.test.ts"]);
  deepEqual(filesToRunAgain(failed("a.test.ts", "b.test.ts"), files, 1), []);
  deepEqual(filesToRunAgain(failed("a.test.ts"), files, 0), [], "only where it is asked for");
  deepEqual(filesToRunAgain(failed("one of a.test.ts, b.test.ts"), files, 2), []);
  deepEqual(filesToRunAgain([], files, 2), []);
});

test("a test file that changes or measures its whole process gets one of its own", () => {
  equal(sharingFolder("src/kernel/a.test.ts", "equal(1, 1)"), "src/");
  equal(sharingFolder("src/app/node/a.test.ts", "equal(1, 1)"), "src/app/");
  equal(sharingFolder("tools/a.test.ts", "equal(1, 1)"), undefined);
  const processWide = [
    'process.env["A"] = "b"',
    "process.env.A ??= b",
    "process.chdir(folder)",
    'process.on("exit", f)',
    "mock.timers.enable()",
    'import { spawn } from "node:child_process"',
    "globalThis.fetch = f",
  ];
  for (const text of processWide) equal(sharingFolder("src/kernel/a.test.ts", text), undefined, text);
  equal(sharingFolder("src/kernel/a.test.ts", 'if (process.env["A"] === "b") return'), "src/");
});

test("every file is dealt to one process, which imports it as a suite of its path", (t: TestContext) => {
  const entries = entriesFolder();
  t.after(() => entries.remove());
  const files = ["src/base/digest.test.ts", "src/kernel/memory/memory.test.ts", "tools/test.test.ts"];
  const processes = testProcesses(files, entries.path);
  deepEqual(processes.flatMap((each) => each.files).toSorted(), files);
  const shared = processes.find((each) => each.files.length === 2);
  const text = readFileSync(shared?.entry ?? "", "utf8");
  for (const file of files.slice(0, 2)) match(text, new RegExp(`suite\\("${file}", .*import\\("file://.*/${file}"`));
});
