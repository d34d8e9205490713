import { equal } from "node:assert/strict";
import { test } from "node:test";
import { csvHead, csvRows } from "./csv.ts";

const run = {
  run: "j0-1",
  repository: "mill/flour",
  workflow: 'says "so", twice',
  path: ".github/workflows/x.yml",
  title: "t",
  event: "push",
  ref: "refs/heads/main",
  sha: "ab",
  actor: "=HYPERLINK(1)",
  status: "completed" as const,
  conclusion: "failure" as const,
  createdAt: "2026-11-19T00:00:00.000Z",
  lines: [],
  jobs: [
    {
      job: "t0-1",
      id: "build",
      name: "build (a)",
      needs: [],
      status: "completed" as const,
      conclusion: "success" as const,
      reason: "",
      attempts: 1,
      steps: [{ number: 1, name: "s", status: "completed" as const, tookMs: 7 }],
    },
  ],
};

test("a job is a row: quoted where it must be, and no formula", () => {
  const tests = [{ job: "build (a)", name: "j.xml", passed: 2, failed: 1, skipped: 0 }];
  const [row = ""] = csvRows({ run, artifacts: [], tests } as never);
  const expected =
    'j0-1,mill/flour,"says ""so"", twice",push,refs/heads/main,ab,\'=HYPERLINK(1),failure,' +
    "2026-11-19T00:00:00.000Z,,t0-1,build (a),success,1,,7,2,1";
  equal(row, expected);
  equal(csvHead().split(",").length, 18);
});
