import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { merged, shownTests, testsMax, type History } from "./history.ts";
import { readJunit, type TestCase } from "./junit.ts";

const report = `<?xml version="1.0" encoding="UTF-8"?>
<!-- made by a runner -->
<testsuites name="all" tests="5">
  <testsuite name="mill" time="1.5">
    <properties><property name="a" value="b"/></properties>
    <testcase name="grinds &lt;fine&gt; &#233;" classname="mill.Grain" time="0.25" file="grain.test.ts"/>
    <testcase name="sifts">
      <failure message="expected 1 &amp; got 2" type="Assertion"><![CDATA[<deep> & stack]]></failure>
    </testcase>
    <testcase name="waits"><skipped/></testcase>
    <testcase name="breaks"><error type="TypeError"/><system-out>hello &nbsp;</system-out></testcase>
    <testsuite name="inner">
      <testcase name='says "so"' time="1,000.5"><flakyFailure message="once"/></testcase>
    </testsuite>
  </testsuite>
</testsuites>`;

describe("JUnit reports", () => {
  test("are read: names, times, outcomes, messages", () => {
    deepEqual(readJunit(report), [
      { suite: "mill.Grain", name: "grinds <fine> é", outcome: "passed", ms: 250, file: "grain.test.ts" },
      { suite: "mill", name: "sifts", outcome: "failed", ms: 0, message: "expected 1 & got 2" },
      { suite: "mill", name: "waits", outcome: "skipped", ms: 0 },
      { suite: "mill", name: "breaks", outcome: "failed", ms: 0, message: "TypeError" },
      { suite: "inner", name: 'says "so"', outcome: "passed", ms: 1_000_500, isFlaky: true },
    ]);
  });

  const lol = `<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>`;
  const hostile: readonly (readonly [string, string, RegExp])[] = [
    ["entities that multiply", lol, /document type or entities/],
    ["entities that name files", `<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuite/>`, /document type/],
    ["endless depth", `<testsuite>${"<a>".repeat(100)}`, /more than 64 elements deep/],
    ["what does not end", `<testsuite><testcase name="a">`, /ends within/],
    ["a comment that does not end", `<testsuite><!-- `, /does not end/],
    ["a tag that does not end", `<testsuite name="a`, /does not end/],
    ["crossed tags", `<testsuite><testcase></testsuite></testcase>`, /closes nothing/],
    ["another format", `<html><body/></html>`, /neither testsuites nor testsuite/],
    ["nothing", ``, /no element/],
    [
      "too many attributes",
      `<testsuite ${Array.from({ length: 60 }, (_, i) => `a${i}=""`).join(" ")}/>`,
      /too many attributes/,
    ],
    ["too many cases", `<testsuite>${"<testcase/>".repeat(50_001)}</testsuite>`, /more than 50000/],
    ["a case in a case", `<testsuite><testcase><testcase/></testcase></testsuite>`, /in another/],
  ];
  for (const [name, text, why] of hostile) test(`${name}: refused`, () => throws(() => readJunit(text), why));

  test("an entity that is not XML's own is not expanded", () =>
    equal(readJunit(`<testsuite><testcase name="&xxe;&#0;"/></testsuite>`)[0]?.name, "&xxe;&#0;"));

  test("a hostile report takes no long time", () => {
    const started = performance.now();
    throws(() => readJunit(`<testsuite ${"a='' ".repeat(200_000)}`));
    throws(() => readJunit(`<testsuite>${"<".repeat(1_000_000)}`));
    throws(() => readJunit(`<testsuite${" ".repeat(1_000_000)}`));
    ok(performance.now() - started < 20_000);
  });
});

const passed: TestCase = { suite: "s", name: "t", outcome: "passed", ms: 10 };
const failed: TestCase = { ...passed, outcome: "failed", ms: 30 };
const none: History = { tests: [] };
const about = (sha: string, job = "build"): Parameters<typeof merged>[2] => ({
  job,
  sha,
  run: `run-${sha}`,
  atMs: 1_000,
});

function history(...steps: readonly (readonly [TestCase, string, string?])[]): History {
  return steps.reduce((now, [one, sha, job]) => merged(now, [one], about(sha, job)), none);
}

describe("the history of tests", () => {
  const table: readonly (readonly [string, History, number])[] = [
    ["one that passes is not flaky", history([passed, "a"], [passed, "b"]), 0],
    ["one that fails with another commit is not", history([passed, "a"], [failed, "b"]), 0],
    ["one that fails and passes for one commit is", history([failed, "a"], [passed, "a"]), 1],
    ["in either order", history([passed, "a"], [failed, "a"]), 1],
    ["a commit counts once", history([passed, "a"], [failed, "a"], [passed, "a"], [failed, "a"]), 1],
    ["each commit counts", history([passed, "a"], [failed, "a"], [failed, "b"], [passed, "b"]), 2],
    ["another cell of the matrix is another test", history([passed, "a", "linux"], [failed, "a", "mac"]), 0],
    ["what its runner tried again is", history([{ ...passed, isFlaky: true }, "a"]), 1],
    ["what was skipped says nothing", history([{ ...passed, outcome: "skipped" }, "a"], [failed, "a"]), 0],
  ];
  for (const [name, given, flaky] of table)
    test(name, () =>
      equal(
        given.tests.reduce((sum, one) => sum + one.flaky, 0),
        flaky,
      ),
    );

  test("times and outcomes are shown, the worst first", () => {
    const slow: TestCase = { ...passed, name: "slow", ms: 900 };
    const now = merged(history([passed, "a"], [failed, "a"]), [slow], about("b"));
    deepEqual(
      shownTests(now, { sort: "slow", limit: 9 }).map(({ name, msMedian }) => [name, msMedian]),
      [
        ["slow", 900],
        ["t", 30],
      ],
    );
    const [flaky] = shownTests(now, { sort: "flaky", limit: 9 });
    deepEqual([flaky?.name, flaky?.failures, flaky?.flakySha], ["t", 1, "a"]);
    deepEqual(
      flaky?.last.map(({ outcome }) => outcome),
      ["passed", "failed"],
    );
    deepEqual(shownTests(now, { sort: "failing", text: "SLOW", limit: 9 }), []);
  });

  test("it has a limit: what was not seen for longest goes", () => {
    const many = Array.from({ length: testsMax }, (_, i): TestCase => ({ ...passed, name: `t${i}` }));
    const now = merged(merged(none, many, about("a")), [{ ...passed, name: "new" }], about("b"));
    equal(now.tests.length, testsMax);
    ok(!now.tests.some(({ name }) => name === "t0") && now.tests.at(-1)?.name === "new");
  });
});
