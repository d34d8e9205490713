import { deepEqual, equal } from "node:assert/strict";
import { globSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { measuredPath } from "#sim/coverage.ts";
import { describeVerdict, judge, unreachable } from "./unreachable.ts";

const excuse = { file: "step.ts", code: "return undefined;", why: "for the test" };
const excused = { file: "step.ts", line: 7, code: "return undefined;" };

test("branches that no seed reached are listed by location, except assertions and excused ones", () => {
  const decide = { file: "decide/due.ts", line: 3, code: "return nothing;" };
  const rest = { file: "apply/apply.ts", line: 4, code: "return;" };
  const assertion = { file: "apply/apply.ts", line: 5, code: "default: return unreachable(event);" };
  const verdict = judge([decide, rest, assertion, excused], [excuse]);
  deepEqual(verdict, { decide: [decide], rest: [rest], assertions: 1, excused: [excuse], wrongExcuses: [] });
  equal(describeVerdict(verdict)[0], "branches of decide that no seed hit: 1");
});

test("with none left it says so", () => {
  equal(describeVerdict(judge([excused], [excuse]))[0], "every branch of decide was hit");
});

test("an excuse for a reached or removed branch is an error", () => {
  deepEqual(judge([], [excuse]).wrongExcuses, [excuse]);
  deepEqual(judge([{ ...excused, code: "return none;" }], [excuse]).wrongExcuses, [excuse]);
});

test("the measured files of the kernel exist, and so do those of all excuses", () => {
  const kernel = join(dirname(import.meta.dirname), "../kernel");
  const measured = globSync("**/*.ts", { cwd: kernel }).flatMap((path) => measuredPath(`/src/kernel/${path}`) ?? []);
  for (const path of ["decide/due.ts", "decide/validate.ts", "apply/settle.ts", "apply/moves.ts", "step.ts"])
    equal(measured.includes(path), true, path);
  for (const { file } of unreachable) equal(measured.includes(file), true, file);
});
