import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { missingRequired } from "./test.ts";

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
