import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Heap, type HeapNode } from "./heap.ts";

type Item = HeapNode & { value: number };

const drain = (heap: Heap<Item>): number[] => {
  const values: number[] = [];
  for (let item = heap.top(); item; item = heap.top()) {
    heap.remove(item);
    values.push(item.value);
  }
  return values;
};

test("a heap returns its items in order, whatever was removed or sunk in between", () => {
  const moves = fc.array(
    fc.record({ do: fc.constantFrom("push", "push", "remove", "sink"), value: fc.nat(50), at: fc.nat(1_000) }),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(moves, (given) => {
      const heap = new Heap<Item>((a, b) => a.value < b.value);
      const items: Item[] = [];
      for (const { do: move, value, at } of given) {
        const item = items[at % Math.max(1, items.length)];
        if (move === "push") {
          const fresh = { value, heapAt: -1 };
          items.push(fresh);
          heap.push(fresh);
        } else if (item && move === "remove") {
          heap.remove(item);
          equal(item.heapAt, -1);
          items.splice(items.indexOf(item), 1);
        } else if (item) {
          item.value += value;
          heap.sink(item);
        }
        equal(heap.size, items.length);
        equal(heap.top()?.value, items.length === 0 ? undefined : Math.min(...items.map((one) => one.value)));
      }
      const left = items.map((one) => one.value).toSorted((a, b) => a - b);
      deepEqual(drain(heap), left);
    }),
    { seed: 1, numRuns: 300 },
  );
});
