// `npm test`: runs node's own test runner over every test file and ends with what was skipped, and why.
//
//   npm test                       everything
//   npm test -- src/kernel         the test files whose path contains one of these words
//   npm test -- --name claims      the tests whose name matches
//   npm test -- --apart            each file in a process of its own
//   npm run e2e                    the test files below e2e/ instead
//   npm run e2e -- --again 2       runs two failed files at most once more, alone, and names what passes then
//
// A test that lacks something of the outside world skips itself with the reason "needs <thing>: <why>".
// MILLRACE_REQUIRE=postgres,... (or "all") turns the skips of those things into a failure.
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, sep } from "node:path";
import { run } from "node:test";
import { parseArgs } from "node:util";
import { repoRoot } from "./generate.ts";
import { cacheFolder, longestFirst, rememberDurations, type TestProcess } from "./test-order.ts";
import { postgresFor } from "./test-postgres.ts";
import { report, type Outcome, type Skipped } from "./test-report.ts";
import { alone, entriesFolder, testProcesses } from "./test-together.ts";

const patterns = {
  unit: [
    "bin/**/*.test.ts",
    "e2e/conformance/*.test.ts",
    "e2e/node/**/*.test.ts",
    "src/**/*.test.ts",
    "testing/**/*.test.ts",
    "tools/**/*.test.ts",
  ],
  // But for conformance, which needs nothing of the outside world and has its place above.
  e2e: ["e2e/!(conformance|node)/*.test.ts"],
};

const slowestShown = 10;

/** The required things whose tests were skipped. */
export function missingRequired(skipped: readonly Skipped[], required: string): readonly string[] {
  const things = required.split(",").filter((thing) => thing !== "");
  const needed = skipped.map(({ reason }) => /^needs ([\w-]+)/.exec(reason)?.[1] ?? "something unnamed");
  return [...new Set(needed)].filter((thing) => things.includes(thing) || things.includes("all"));
}

/**
 * The files to run once more, alone: those in which something failed, if they are few. More than a few failures have
 * a cause that a second look must not hide, and a failure of an unknown file cannot be looked at again.
 */
export function filesToRunAgain(
  failures: readonly { readonly file: string }[],
  files: readonly string[],
  filesMax: number,
): readonly string[] {
  const failed = [...new Set(failures.map(({ file }) => file))];
  return failed.length <= filesMax && failed.every((file) => files.includes(file)) ? failed : [];
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      e2e: { type: "boolean" },
      apart: { type: "boolean" },
      name: { type: "string" },
      jobs: { type: "string" },
      again: { type: "string" },
    },
    allowPositionals: true,
  });
  const words = positionals.map((word) => word.split("/").join(sep));
  const files = globSync(values.e2e ? patterns.e2e : patterns.unit, { cwd: repoRoot })
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .toSorted();
  if (files.length === 0) {
    console.error(`npm test: no test file matches ${positionals.join(" ") || "the patterns of tools/test.ts"}`);
    process.exitCode = 1;
    return;
  }

  process.env["NODE_COMPILE_CACHE"] ??= join(cacheFolder, "compiled");
  const postgres = await postgresFor(files);
  const entries = entriesFolder();
  // A name that matched a suite would run all of its tests, and here suites bear paths.
  const apart = values.apart === true || values.name !== undefined;
  const processes = longestFirst(apart ? files.map(alone) : testProcesses(files, entries.path));
  const runAll = async (of: readonly TestProcess[], jobs: number): Promise<Outcome> => {
    const events = run({
      cwd: repoRoot,
      files: of.map(({ entry }) => entry),
      concurrency: jobs,
      timeout: 5 * 60_000, // of one file; a test that hangs must not hang the whole run
      ...(values.name === undefined ? {} : { testNamePatterns: [new RegExp(values.name)] }),
    });
    return await report(events, of, process.stdout);
  };
  // Two more than there are cores: many files mostly wait for processes and databases.
  const jobs = values.jobs ? Number(values.jobs) : availableParallelism() + 2;
  const first = await runAll(processes, jobs);
  const again = filesToRunAgain(first.failures, files, Number(values.again ?? 0));
  const second = again.length === 0 ? undefined : await runAll(again.map(alone), 1);
  await postgres.stop();
  entries.remove();
  rememberDurations(first.durations);

  const missing = missingRequired(first.skipped, process.env["MILLRACE_REQUIRE"] ?? "");
  sayEnd(first, second, missing);
  if ((second ?? first).failures.length > 0 || missing.length > 0) process.exitCode = 1;
}

/** What a reader of the end of a long output must know; the runner's own closing lines come last. */
function sayEnd(first: Outcome, second: Outcome | undefined, missing: readonly string[]): void {
  const { skipped, durations, closingLines } = first;
  if (durations.length > slowestShown) {
    console.log("\nthe slowest files:");
    for (const { file, ms } of durations.slice(0, slowestShown))
      console.log(`  ${(ms / 1_000).toFixed(1).padStart(6)} s  ${file}`);
  }
  if (skipped.length > 0) {
    console.log(`\nSKIPPED (${skipped.length}), so not proven by this run:`);
    for (const { name, reason, file } of skipped) console.log(`  - ${name} [${file}]\n      ${reason}`);
  }
  if (second !== undefined) {
    for (const { name, file, why } of first.failures)
      console.log(`FAILED AT FIRST, run again alone: ${name} [${file}]: ${why}`);
    for (const line of second.closingLines.filter((each) => /^ℹ (pass|fail) /.test(each))) console.log(`  ${line}`);
  }
  for (const { name, file, why } of (second ?? first).failures) console.log(`FAILED: ${name} [${file}]: ${why}`);
  for (const thing of missing) console.log(`FAILED: MILLRACE_REQUIRE asks for ${thing}, but its tests were skipped`);
  console.log(`\n${closingLines.join("\n")}`);
}

if (import.meta.main) await main();
