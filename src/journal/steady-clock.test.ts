import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { steadyClock } from "./steady-clock.ts";

test("J4 the store's clock never goes back and never stops", () => {
  let wallMs = 1000;
  let monoMs = 0;
  const clock = steadyClock(
    () => wallMs,
    () => monoMs,
  );
  const at = (wall: number, mono: number): number => {
    wallMs = wall;
    monoMs = mono;
    return clock.nowMs();
  };
  const seen = [at(1000, 0), at(1010, 10), at(9000, 20), at(1030, 30), at(1040, 40)];
  deepEqual(seen, [1000, 1010, 9000, 9010, 9020]);
  clock.atLeast(50_000);
  deepEqual([at(1050, 50), at(60_000, 60)], [50_010, 60_000]);
});
