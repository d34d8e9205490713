import { equal } from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, formatSize, parseDurationMs, parseSizeBytes } from "./units.ts";

test("durations need a unit, and are counted in whole milliseconds", () => {
  equal(parseDurationMs("250ms"), 250);
  equal(parseDurationMs("1.5s"), 1_500);
  equal(parseDurationMs("2h"), 7_200_000);
  for (const wrong of ["", "30", "s", "-1s", "30 s", "30S", "1e3s", "9999999999999999d"])
    equal(parseDurationMs(wrong), undefined, wrong);
});

test("sizes need a binary unit", () => {
  equal(parseSizeBytes("512B"), 512);
  equal(parseSizeBytes("2GiB"), 2 * 1024 ** 3);
  for (const wrong of ["2G", "2GB", "2 GiB", "GiB", "-2GiB"]) equal(parseSizeBytes(wrong), undefined, wrong);
});

test("what is printed is short and never shows 60 of a unit", () => {
  const shown = [0, 999, 1_000, 4_230, 59_949, 59_950, 185_000, 3_599_600, 7_800_000, 86_400_000].map(formatDuration);
  equal(shown.join(" | "), "0ms | 999ms | 1s | 4.2s | 59.9s | 1m | 3m 5s | 1h | 2h 10m | 1d");
  equal([0, 1023, 1024, 1536, 5 * 1024 ** 3].map(formatSize).join(" "), "0B 1023B 1KiB 1.5KiB 5GiB");
});
