import { deepEqual, equal, match } from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Writable } from "node:stream";
import { run, test, type TestContext } from "node:test";
import { report } from "./test-report.ts";
import { together } from "./test-together.ts";

/** Runs the files in one process, as `npm test` does, and says what failed where, and which files were timed. */
async function outcome(t: TestContext, bodies: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "millrace-test-report-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = Object.entries(bodies).map(([name, body]) => {
    const file = join(folder, `${name}.test.mjs`);
    writeFileSync(file, `import { after, test } from "node:test";\n${body}`);
    return file;
  });
  const shared = together(files, join(folder, "together.mjs"));
  delete process.env["NODE_TEST_CONTEXT"]; // with it, a runner within a test runs nothing
  const events = run({ files: [shared.entry] });
  const { failures, durations } = await report(events, [shared], new Writable({ write: (_c, _e, done) => done() }));
  const short = (path: string) => path.replaceAll(/[^ ]*\//g, "");
  return {
    failures: failures.map(({ name, file, why }) => [basename(name), short(file), why]),
    timed: durations.map(({ file }) => basename(file)).toSorted(),
  };
}

test("in a shared process a failure names its file, and one file's failure leaves the others alone", async (t) => {
  const { failures, timed } = await outcome(t, {
    a: `after(() => { throw new Error("of a"); }); test("one", () => {});`,
    b: `test("two", () => { throw new Error("wrong"); });`,
    c: `import "./missing.mjs";`,
    d: `test("three", () => {});`,
  });
  deepEqual(
    failures.map(([name, file]) => [name, file]),
    [
      ["a.test.mjs", "a.test.mjs"],
      ["two", "b.test.mjs"],
      ["c.test.mjs", "c.test.mjs"],
    ],
  );
  deepEqual(timed, ["a.test.mjs", "b.test.mjs", "c.test.mjs", "d.test.mjs"]);
});

test("a shared process that dies names the files that had not ended", async (t) => {
  const { failures } = await outcome(t, {
    a: `test("one", () => {});`,
    b: `test("two", () => process.exit(7));`,
    c: `test("three", () => {});`,
  });
  equal(failures.length, 1);
  match(failures[0]?.[1] ?? "", /^one of (a\.test\.mjs, )?b\.test\.mjs, c\.test\.mjs$/); // a's end may be lost with it
});
