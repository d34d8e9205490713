// House rules that no linter knows. Each message says which file, and the test's name says why.
import { ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { importsOf, ourFiles, read, targetOf } from "./source-files.ts";

const code = ourFiles("{bin,src,bench,e2e,tools,testing}/**/*.{ts,tsx,js}");
const tests = code.filter((file) => file.endsWith(".test.ts"));
const thisFile = "tools/tidy.test.ts"; // it names the things it forbids

/** Programs and worker threads: started by path, imported by nobody. */
const entries = new Set(["src/cli/main.ts", "src/sim/main.ts", "src/console/main.tsx"]);

/** Tests that may sleep, each with the reason why waiting for a state is not possible there. */
const sleepersAllowed: Readonly<Record<string, string>> = {
  "tools/lint.test.ts": "only quotes a timer, as a violation to be found",
};

const linesWith = (file: string, pattern: RegExp): readonly string[] =>
  read(file)
    .split("\n")
    .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : []));

function noneOf(complaints: readonly string[]): void {
  ok(complaints.length === 0, `\n${complaints.join("\n")}`);
}

describe("tidy", () => {
  test("the kernel knows no dialect", () => {
    const dialects = /bazel|github|workflow|spark|docker/i;
    noneOf(code.filter((file) => file.startsWith("src/kernel/")).flatMap((file) => linesWith(file, dialects)));
  });

  test("no folder for things without a home", () => {
    noneOf(code.filter((file) => /(^|\/)(utils?|helpers?|common|misc|shared|lib)\//.test(file)));
  });

  test("lines are at most 120 characters long, but for text that the formatter cannot break", () => {
    const long = /^(?!.*`.*\$\{.*`).{121,}/u;
    noneOf(code.filter((file) => !file.includes("/generated/")).flatMap((file) => linesWith(file, long)));
  });

  test("tests wait for a state (testing/until.ts), never for a time", () => {
    const sleeping = /\bsetTimeout\(|timers\/promises/;
    const suspects = tests.filter((file) => file !== thisFile && !(file in sleepersAllowed));
    noneOf(suspects.flatMap((file) => linesWith(file, sleeping)));
  });

  test("no test is switched to run alone", () => {
    const alone = /\b(test|it|describe|suite)\.only\(|\bonly: true\b/;
    noneOf(tests.filter((file) => file !== thisFile).flatMap((file) => linesWith(file, alone)));
  });

  test("no file names a machine's paths, a package registry, or carries a download address in the lockfile", () => {
    const text = ourFiles("**/*.{ts,tsx,js,json,md,yml,yaml,html,css,sh,proto,py}", ".ci/*", ".gitignore", ".npmrc");
    const forbidden = /(?<!\w)\/work\/|\/root\/|\/home\/\w+\/|registry\.(npmjs|yarnpkg)|npmmirror|"resolved":/;
    noneOf(text.filter((file) => file !== thisFile).flatMap((file) => linesWith(file, forbidden)));
  });

  test("every file below src is an entry or imported from somewhere", () => {
    const imported = new Set(
      code.flatMap((file) => importsOf(read(file)).map((specifier) => targetOf(file, specifier) ?? "")),
    );
    const candidates = code.filter((file) => file.startsWith("src/") && !tests.includes(file));
    noneOf(candidates.filter((file) => !imported.has(file) && !entries.has(file)));
  });
});
