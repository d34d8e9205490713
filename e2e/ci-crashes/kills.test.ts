/** One of each cruelty over a long job; `npm run ci:kills` does a hundred. */
import { equal } from "node:assert/strict";
import { test } from "node:test";
import { cruelties, playKills } from "./kills/play.ts";

const skip = process.platform === "linux" ? false : "needs linux: jobs run in its process groups";

test("a job goes on through kills of its runner and its node", { skip, timeout: 300_000 }, async () => {
  equal(await playKills({ steps: 9, cruelties, seed: 1 }), cruelties.length);
});
