import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { added, nothing } from "./short-list.ts";

test("a list that grows item by item contains all of them, and the empty one stays empty", () => {
  for (let length = 0; length <= 40; length += 1) {
    const items = Array.from({ length }, (_, i) => i);
    deepEqual(items.reduce<readonly number[]>(added, nothing), items);
  }
  equal(nothing.length, 0);
});
