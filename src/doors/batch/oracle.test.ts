/** A few of the generated queries; all of them by `npm run batch:judge`. */
import { equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { realClock } from "#testing/real-clock.ts";
import { Engines } from "./run/engines.ts";
import { judgeQueries } from "./testing/judge.ts";

test("generated queries in stages answer what one process answers", { timeout: 120_000 }, async () => {
  const wrong: string[] = [];
  await using engines = new Engines({ clock: realClock, enginesMax: 2 });
  const report = await judgeQueries({
    random: new Random("every test run"),
    count: 24,
    log: (line) => wrong.push(line),
    engines,
  });
  equal(wrong.join("\n"), "");
  equal(report.queries, 24);
  ok(report.staged > 12, `only ${report.staged} were cut into stages`);
});
