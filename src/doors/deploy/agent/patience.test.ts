import { equal } from "node:assert/strict";
import { test } from "node:test";
import { Patience } from "./patience.ts";

test("PT1, DEPLOY-14: what fails again and again is tried less and less often, something new at once", () => {
  const patience = new Patience();
  let tries = 0;
  for (let nowMs = 0; nowMs < 600_000; nowMs += 100)
    if (patience.mayTry("stage a", nowMs)) {
      tries += 1;
      patience.failed("stage a", nowMs);
    }
  equal(tries, 16, "in ten minutes");
  equal(patience.mayTry("stage b", 600_000), true);
  equal(patience.mayTry("stage a", 600_000), false);
  patience.succeeded();
  equal(patience.mayTry("stage a", 600_000), true);
});
