/** A slice of `npm run deploy:chaos`: some of the steps in which an agent is killed, and a race, by a seed. */
import { deepEqual } from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { killSteps } from "./chaos/agent-kills.ts";
import { killAgents, race } from "./chaos/scenarios.ts";

const skip = process.platform === "linux" ? false : "needs linux: agents find their processes in /proc";
const stepsEach = 4;

describe("releases and trouble", { skip, timeout: 560_000 }, () => {
  const seed = String(Date.now());
  const random = new Random(seed);
  const round = { random, rounds: 1, say: (line: string) => console.log(`#${line} (seed ${seed})`) };

  test("an agent that is killed in a step of staging or switching leaves nothing torn, and goes on", async () => {
    const from = random.below(killSteps.length);
    const steps = Array.from({ length: stepsEach }, (_, i) => killSteps[(from + 5 * i) % killSteps.length]);
    deepEqual(
      await killAgents(
        steps.filter((step) => step !== undefined),
        round,
      ),
      [],
    );
  });

  test("DEPLOY-7: two releases and a rollback at once end with one version everywhere", async () => {
    deepEqual(await race(round), []);
  });
});
