/** A few of the generated queries; all of them by `npm run batch:judge`. */
import { equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { realClock } from "#testing/real-clock.ts";
import { Engines } from "./run/engines.ts";
import { judgeQueries } from "./testing/judge.ts";
import { NearEngine } from "./testing/near-engine.ts";

test("generated queries in stages answer what one process answers", { timeout: 120_000 }, async () => {
  const wrong: string[] = [];
  await using apart = new Engines({ clock: realClock, enginesMax: 1 });
  const judge = { random: new Random("every test run"), log: (line: string) => void wrong.push(line) };
  const near = await judgeQueries({ ...judge, count: 40, engines: await NearEngine.open() });
  const engines = await judgeQueries({ ...judge, count: 2, engines: apart });
  equal(wrong.join("\n"), "");
  equal(near.queries + engines.queries, 42);
  ok(near.staged > 20, `only ${near.staged} were cut into stages`);
});
