/** A slice of `npm run store:kill`, for every run of the suite. */
import { deepEqual, ok } from "node:assert/strict";
import { test } from "node:test";
import { modes, runRounds } from "./rounds.ts";

const seed = process.env["KILL_SEED"] ?? String(Date.now() % 2 ** 31);
const rounds = 4;

for (const mode of modes)
  test(
    `kill -9, ${rounds} rounds, ${mode.name}: nothing acknowledged is lost, nothing wrong is served (KILL_SEED=${seed})`,
    {
      timeout: 240_000,
    },
    async () => {
      const outcome = await runRounds(mode, { rounds, seed, say: () => {} });
      deepEqual(outcome.problems, []);
      ok(outcome.acknowledged > 0 && outcome.checked > 0, JSON.stringify(outcome));
    },
  );
