/** Problem matchers as tables (CI-49): what a file of matchers and lines come to. */
import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { Matchers } from "./matchers.ts";

const workspace = mkdtempSync(join(tmpdir(), "millrace-ci-matchers-"));
mkdirSync(join(workspace, "sub"));
for (const file of ["a.js", "b.js", "sub/a.js"]) writeFileSync(join(workspace, file), "");
after(() => clearAway(workspace));

const one = (more: object): object => ({ owner: "o", pattern: [{ regexp: "^(\\S+): (.*)$", message: 2, ...more }] });

function withFile(matchers: Matchers, ...problemMatcher: readonly object[]): string {
  const path = join(workspace, "m.json");
  writeFileSync(path, `\uFEFF${JSON.stringify({ problemMatcher })}`);
  matchers.add("m.json");
  return path;
}

function found(problemMatcher: readonly object[], lines: readonly string[]): readonly unknown[] {
  const matchers = new Matchers(workspace);
  withFile(matchers, ...problemMatcher);
  return lines.flatMap((line) => {
    const annotation = matchers.match(line, () => {});
    return annotation ? [Object.values(annotation).join("|")] : [];
  });
}

describe("problem matchers", () => {
  test("CI-49: fields come by their groups, and severity from the line, the matcher, or error", () => {
    const pattern = {
      regexp: "^(.+):(\\d*):(\\d*): (\\w*) (\\w*) (.+)$",
      file: 1,
      line: 2,
      column: 3,
      severity: 4,
      code: 5,
      message: 6,
    };
    const all = [{ owner: "o", pattern: [pattern] }];
    deepEqual(
      found(all, [
        "a.js:1:2: warning E1 first",
        "a.js:x:y: no match",
        "b.js:::   second",
        "b.js:3:: nonsense E2 not told",
      ]),
      ["warning|first|a.js|1|2|E1", "error|second|b.js"],
    );
    deepEqual(found([{ owner: "o", severity: "Notice", pattern: [pattern] }], ["a.js:1:1:   x"]), [
      "notice|x|a.js|1|1",
    ]);
  });

  test("CI-49: files are found from the workspace or beside fromPath, and told only where they are", () => {
    deepEqual(found([one({ file: 1 })], ["a.js: x", "none.js: x", "/etc/passwd: x", `${workspace}/sub/a.js: x`]), [
      "error|x|a.js",
      "error|x",
      "error|x",
      "error|x|sub/a.js",
    ]);
    const beside = { regexp: "^(\\S+): (.*) \\[(.*)\\]$", file: 1, message: 2, fromPath: 3 };
    deepEqual(
      found([{ owner: "o", pattern: [beside] }], [`a.js: x [${workspace}/sub/p.json]`, "a.js: x [sub/p.json]"]),
      ["error|x|sub/a.js", "error|x|sub/a.js"],
    );
    deepEqual(found([{ ...one({ file: 1 }), fromPath: "sub/project.json" }], ["a.js: x"]), ["error|x|sub/a.js"]);
  });

  const three = [
    { regexp: "^A (\\S+)$", file: 1 },
    { regexp: "^B (\\d+)$", line: 1 },
    { regexp: "^C (.+)$", message: 1 },
  ];
  const table: readonly (readonly [name: string, loop: boolean, lines: string, expected: readonly string[]])[] = [
    ["all in order", false, "A a.js,B 1,C x", ["error|x|a.js|1"]],
    ["once only without a loop", false, "A a.js,B 1,C x,C y", ["error|x|a.js|1"]],
    ["again and again with one", true, "A a.js,B 1,C x,C y,no,C z", ["error|x|a.js|1", "error|y|a.js|1"]],
    ["a line between breaks it", false, "A a.js,no,B 1,C x", []],
    ["the first may begin anew", false, "A a.js,A b.js,B 2,C x", ["error|x|b.js|2"]],
    ["a new first ends a loop", true, "A a.js,B 1,C x,A b.js,B 2,C y", ["error|x|a.js|1", "error|y|b.js|2"]],
  ];
  for (const [name, loop, lines, expected] of table)
    test(`CI-49: several lines: ${name}`, () => {
      const [a, b, c] = three;
      deepEqual(found([{ owner: "o", pattern: [a, b, { ...c, loop }] }], lines.split(",")), expected);
    });

  test("CI-49: later owners are asked first, one match resets the others, and the same owner replaces", () => {
    const matchers = new Matchers(workspace);
    withFile(matchers, { owner: "first", severity: "warning", pattern: [{ regexp: "^(.+)$", message: 1 }] });
    withFile(matchers, { owner: "SECOND", severity: "notice", pattern: [{ regexp: "^x(.+)$", message: 1 }] });
    const level = (line: string): string | undefined => matchers.match(line, () => {})?.level;
    deepEqual([level("xy"), level("y")], ["notice", "warning"]);
    const path = withFile(matchers, { owner: "second", pattern: [{ regexp: "^z(.+)$", message: 1 }] });
    deepEqual([level("xy"), level("zy")], ["warning", "error"]);
    matchers.removeFrom(path);
    equal(level("zy"), "warning");
    matchers.remove("First");
    equal(level("zy"), undefined);
  });

  test("CI-49: colours do not count", () => {
    deepEqual(found([one({ file: 1 })], ["\u001b[31ma.js\u001b[0m: \u001b[1mx\u001b[m"]), ["error|x|a.js"]);
  });

  const wrong: readonly (readonly [why: RegExp, matcher: object])[] = [
    [/severity 'loud'/, { ...one({}), severity: "loud" }],
    [/only the last of several/, one({ loop: true })],
    [/only the last of several/, { owner: "o", pattern: [{ ...three[0], loop: true }, three[2]] }],
    [/message twice/, { owner: "o", pattern: [three[2], three[2]] }],
    [/never sets message/, { owner: "o", pattern: [three[0]] }],
    [/line is 3, which is no group/, one({ line: 3 })],
    [/that loops must set message/, { owner: "o", pattern: [three[2], { regexp: "x", loop: true }] }],
    [/owner/, { ...one({}), owner: "" }],
    [/Invalid regular expression/, { owner: "o", pattern: [{ regexp: "(", message: 1 }] }],
  ];
  for (const [why, matcher] of wrong)
    test(`CI-49: refused: ${why.source}`, () => throws(() => withFile(new Matchers(workspace), matcher), why));

  test("CI-49: patterns that take for ever do not, and those that still do are taken away", { timeout: 30_000 }, () => {
    const line = `${"a".repeat(60)}!`;
    const matchers = new Matchers(workspace);
    withFile(matchers, { owner: "bomb", pattern: [{ regexp: "^(a+)+$", message: 1 }] });
    const startedMs = performance.now();
    for (let times = 0; times < 100; times += 1)
      equal(
        matchers.match(line, () => {}),
        undefined,
      );
    ok(performance.now() - startedMs < 5_000);
    withFile(matchers, { owner: "worse", pattern: [{ regexp: "^(?=(a+))(a+)+$", message: 1 }] });
    const warnings: string[] = [];
    for (let times = 0; times < 10; times += 1) matchers.match(line, (message) => warnings.push(message));
    equal(warnings.length, 1);
    ok(warnings[0]?.startsWith("Removing issue matcher 'worse'. Matcher failed 3 times."));
  });
});
