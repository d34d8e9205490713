/** A few of the generated queries; all of them by `npm run batch:judge`. */
import { equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { judgeQueries } from "./testing/judge.ts";

test("generated queries in stages answer what one process answers", { timeout: 120_000 }, async () => {
  const wrong: string[] = [];
  const report = await judgeQueries({
    random: new Random("every test run"),
    count: 24,
    log: (line) => wrong.push(line),
  });
  equal(wrong.join("\n"), "");
  equal(report.queries, 24);
  ok(report.staged > 12, `only ${report.staged} were cut into stages`);
});
