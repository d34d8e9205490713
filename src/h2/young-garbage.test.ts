import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { bytesBetween, countRead } from "./young-garbage.ts";

test("the young are collected once in a while, where that can be asked for", (context) => {
  const process: { gc?: unknown } = globalThis;
  const before = process.gc;
  context.after(() => (process.gc = before));
  process.gc = undefined;
  countRead(2 * bytesBetween);
  const asked: unknown[] = [];
  process.gc = (options: unknown) => asked.push(options);
  for (let read = 0; read < 2 * bytesBetween; read += 65_536) countRead(65_536);
  deepEqual(asked, [{ type: "minor" }, { type: "minor" }]);
});
