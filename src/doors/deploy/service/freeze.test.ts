import { equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { frozenBy, parseFreeze } from "./freeze.ts";

const weekend = "Fri 16:00/Mon 08:00 Europe/Berlin";
const cases: readonly [string, string, boolean][] = [
  ["a Thursday", "2026-11-19T12:00:00Z", false],
  ["Friday one minute before, in winter", "2026-11-20T14:59:00Z", false],
  ["Friday at four in Berlin", "2026-11-20T15:00:00Z", true],
  ["Sunday", "2026-11-22T12:00:00Z", true],
  ["Monday before eight", "2026-11-23T06:59:00Z", true],
  ["Monday at eight", "2026-11-23T07:00:00Z", false],
  ["Friday at four in summer, by the clocks there", "2026-07-17T14:00:00Z", true],
  ["and one minute before", "2026-07-17T13:59:00Z", false],
];

describe("a freeze window", () => {
  for (const [name, at, isFrozen] of cases)
    test(`${name} is ${isFrozen ? "" : "not "}within ${weekend}`, () =>
      equal(frozenBy([weekend], Date.parse(at)) !== undefined, isFrozen));

  for (const text of [
    "Fri 16:00/Mon 08:00",
    "Fri 25:00/Mon 08:00 Europe/Berlin",
    "Fri 16:00/Mon 08:00 Nowhere/Land",
    "Fri 16:00/Fri 16:00 UTC",
    "",
  ])
    test(`${JSON.stringify(text)} is none`, () => equal(parseFreeze(text), undefined));
});
