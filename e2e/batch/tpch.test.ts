/** All 22 queries, small; larger by `npm run batch:judge -- tpch SCALE`. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { judgeTpch } from "#doors/batch/testing/tpch.ts";

test("the 22 queries of TPC-H in stages answer what one process answers", { timeout: 240_000 }, async () => {
  const lines: string[] = [];
  const rows = await judgeTpch(0.002, (line) => lines.push(line));
  const wrong = rows.filter(({ isEqual }) => !isEqual);
  deepEqual(
    wrong.map(({ query }) => query),
    [],
    lines.join("\n"),
  );
  equal(rows.length, 22);
  ok(rows.filter(({ isStaged }) => isStaged).length >= 20);
});
