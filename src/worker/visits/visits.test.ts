import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { Visits } from "./visits.ts";

const none: ReadonlySet<number> = new Set();

test("without any knowledge shards take turns", () => {
  const visits = new Visits(3, new Random(1));
  deepEqual(
    [1, 2, 3, 4].map(() => visits.next(none)),
    [0, 1, 2, 0],
  );
});

test("shards with ready tasks are visited by weight", () => {
  const visits = new Visits(10, new Random(1));
  visits.learn(3, 30);
  visits.learn(7, 10);
  const counts = new Map<number, number>();
  for (let i = 0; i < 3_000; i += 1) {
    const shard = visits.next(none) ?? -1;
    counts.set(shard, (counts.get(shard) ?? 0) + 1);
  }
  const [heavy, light] = [counts.get(3) ?? 0, counts.get(7) ?? 0];
  ok(heavy > 1_400 && heavy < 1_800, `3 was visited ${heavy} times`);
  ok(light > 400 && light < 750, `7 was visited ${light} times`);
});

test("K10: no shard waits forever, whatever the weights are", () => {
  const visits = new Visits(50, new Random(1));
  visits.learn(0, 1e9);
  const seen = new Set<number | undefined>();
  for (let i = 0; i < 50 * 3 + 3; i += 1) seen.add(visits.next(none));
  equal(seen.size, 50);
});

test("a shard that is being visited is not visited twice", () => {
  const visits = new Visits(2, new Random(1));
  visits.learn(0, 5);
  equal(visits.next(new Set([0])), 1);
  equal(visits.next(new Set([0, 1])), undefined);
});
