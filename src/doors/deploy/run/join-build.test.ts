import { equal, match, notEqual } from "node:assert/strict";
import { test } from "node:test";
import { buildKey, type BuildSpec } from "#doors/deploy/plan.ts";
import { afterBuild } from "./join-build.ts";

const build = { run: "make", output: "out", timeout: 1 };
const spec: BuildSpec = { sha: "4f2c91a", repository: "/r", build };

test("what decides a build's outcome is in its key, and nothing else", () => {
  const key = buildKey(spec);
  equal(buildKey({ ...spec, build: { ...build, timeout: 2 } }), key);
  for (const other of [
    { ...spec, sha: "4f2c91b" },
    { ...spec, repository: "/s" },
    { ...spec, build: undefined },
    { ...spec, build: { ...build, run: "make all" } },
    { ...spec, build: { ...build, output: "." } },
  ])
    notEqual(buildKey(other), key);
});

const cases: readonly [phase: string, kind: string, why: RegExp][] = [
  ["WAITING", "wait", /^$/],
  ["RUNNING", "wait", /^$/],
  ["CANCELLING", "wait", /^$/],
  ["FAILED", "fail", /j1-1, has ended FAILED: exit code 2/],
  ["CANCELLED", "fail", /CANCELLED/],
  ["SUCCEEDED", "fail", /no longer in the store/],
  ["UNKNOWN", "fail", /not known any more/],
];
for (const [phase, kind, why] of cases)
  test(`BJ3: a release whose build is ${phase}: ${kind}`, () => {
    const plan = afterBuild("j1-1", { phase, reason: "exit code 2" });
    equal(plan.kind, kind);
    match(plan.kind === "fail" ? plan.reason : "", why);
  });
