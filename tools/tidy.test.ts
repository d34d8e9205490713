// House rules that no linter knows. Each message names the file, and the test's name says why.
import { ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { doors } from "#app/doors.ts";
import { importsOf, ourFiles, read, targetOf } from "./source-files.ts";

const code = ourFiles("{bin,src,bench,e2e,tools,testing}/**/*.{ts,tsx,js}");
const tests = code.filter((file) => file.endsWith(".test.ts"));
const thisFile = "tools/tidy.test.ts"; // it names what it forbids

/** Programs and worker threads, started by path; what is bundled into the console for doors, and its description. */
const entries = new Set([
  "src/cli/main.ts",
  "src/sim/main.ts",
  "src/sim/ci/main.ts",
  "src/sim/swarm/main.ts",
  "src/console/main.tsx",
  "src/doors/deploy/agent/installed/run.ts", // tools/agent-program.ts
  "src/console/door-pages.d.ts",
  ...doors.flatMap(({ pages, jobPart }) =>
    [...pages, ...(jobPart ? [jobPart] : [])].map(({ module }) => `src/console/${module}`),
  ),
]);

/** Tests that may sleep, each with the reason why waiting for a state is not possible there. */
const sleepersAllowed: Readonly<Record<string, string>> = {
  "tools/lint.test.ts": "only quotes a timer, as a violation to be found",
};

/** Folders whose comments and test names are in plain English, and phrases that must not come back there. */
const plainFolders = /^(src|tools|testing|e2e|bench)\/(?!.*\/generated\/)/;
const riddles = /(?<!`)\b(whoever|whosoever|nobody|somebody|told of|likewise|anew|in vain|such a one|what is in it)\b/;
const inComment = new RegExp(`(^|\\s)(//|/\\*\\*?|\\*) .*${riddles.source}`, "i");
const inTestName = new RegExp(`\\b(test|describe)\\(["'\`].*${riddles.source}`, "i");

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

  test("no file of app or cli names a door, but for the list of doors", () => {
    const isTest = (file: string): boolean => file.endsWith(".test.ts") || file.includes("/testing/");
    const rest = code.filter((file) => /^src\/(app|cli)\//.test(file) && file !== "src/app/doors.ts" && !isTest(file));
    ok(rest.length > 50);
    noneOf(rest.flatMap((file) => linesWith(file, /#doors\//)));
  });

  test("every hop that ARCHITECTURE.md describes is a function of the file it names", () => {
    const rows = [...read("ARCHITECTURE.md").matchAll(/^\| \d+ \| `(src\/[^`]+)` \| ([^|]+) \|/gm)];
    ok(rows.length > 15);
    noneOf(
      rows.flatMap(([, file = "", names = ""]) => {
        if (!code.includes(file)) return [`ARCHITECTURE.md: there is no ${file}`];
        const missing = [...names.matchAll(/`([^`]+)`/g)].filter(([, name = ""]) => !read(file).includes(name));
        return missing.map(([, name]) => `ARCHITECTURE.md: ${file} has no ${name}`);
      }),
    );
  });

  test("no folder for things without a home", () => {
    noneOf(code.filter((file) => /(^|\/)(utils?|helpers?|common|misc|shared|lib)\//.test(file)));
  });

  test("lines are at most 120 characters long, except for text that the formatter cannot break", () => {
    const long = /^(?!.*`.*\$\{.*`).{121,}/u;
    noneOf(code.filter((file) => !file.includes("/generated/")).flatMap((file) => linesWith(file, long)));
  });

  test("comments and test names say who does what, in the words of the glossary (docs/explain/glossary.md)", () => {
    const plain = code.filter((file) => plainFolders.test(file) && file !== thisFile);
    noneOf(plain.flatMap((file) => [...linesWith(file, inComment), ...linesWith(file, inTestName)]));
  });

  test("tests wait for a state (testing/until.ts), never for a time", () => {
    const sleeping = /\bsetTimeout\(|timers\/promises/;
    const suspects = tests.filter((file) => file !== thisFile && !(file in sleepersAllowed));
    noneOf(suspects.flatMap((file) => linesWith(file, sleeping)));
  });

  test("no test is marked to run alone", () => {
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
